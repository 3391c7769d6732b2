/* base/list.h: a ring keeps its order in both directions, whatever is taken out. */
#include "base/list.h"

#include "check.h"

typedef struct item {
    int before;
    list_node_t node;
    int number;
} item_t;

/* The list holds these numbers in this order, read forwards and backwards. */
static void check_numbers(const list_node_t *head, const int *numbers, size_t count)
{
    const list_node_t *node = head->next;
    for (size_t index = 0; index < count; index++, node = node->next) {
        check(node != head);
        check_eq(LIST_ITEM(node, item_t, node)->number, numbers[index]);
        check(node->next->previous == node);
    }
    check(node == head);
    check_eq(list_is_empty(head), count == 0);
}

test(a_new_list_is_empty)
{
    list_node_t head;
    list_init(&head);
    check(list_is_empty(&head));
    check_numbers(&head, NULL, 0);
}

test(items_stand_where_they_were_pushed)
{
    list_node_t head;
    item_t items[4] = {{.number = 1}, {.number = 2}, {.number = 3}, {.number = 4}};
    list_init(&head);
    list_push_back(&head, &items[0].node);
    list_push_back(&head, &items[1].node);
    list_push_front(&head, &items[2].node);
    list_insert_after(&items[0].node, &items[3].node);
    check_numbers(&head, (int[]){3, 1, 4, 2}, 4);
}

test(any_item_can_be_taken_out)
{
    for (unsigned gone = 0; gone < 3; gone++) {
        list_node_t head;
        item_t items[3] = {{.number = 0}, {.number = 1}, {.number = 2}};
        list_init(&head);
        for (unsigned index = 0; index < 3; index++)
            list_push_back(&head, &items[index].node);
        list_remove(&items[gone].node);
        int left[2] = {gone == 0 ? 1 : 0, gone == 2 ? 1 : 2};
        check_numbers(&head, left, 2);
    }
}

test(removing_twice_is_harmless)
{
    list_node_t head;
    item_t items[2] = {{.number = 1}, {.number = 2}};
    list_init(&head);
    list_push_back(&head, &items[0].node);
    list_push_back(&head, &items[1].node);
    list_remove(&items[0].node);
    list_remove(&items[0].node);
    check_numbers(&head, (int[]){2}, 1);
    check(list_is_empty(&items[0].node));
}

test(a_head_of_zeroes_is_an_empty_list)
{
    list_node_t heads[2] = {{NULL, NULL}, {NULL, NULL}};
    item_t items[2] = {{.number = 1}, {.number = 2}};
    check(list_is_empty(&heads[0]) && list_first(&heads[0]) == &heads[0]);
    list_push_back(&heads[0], &items[0].node);
    check_numbers(&heads[0], (int[]){1}, 1);
    check(list_first(&heads[0]) == &items[0].node);
    list_push_front(&heads[1], &items[1].node);
    check_numbers(&heads[1], (int[]){2}, 1);
    list_remove(&items[0].node);
    check_numbers(&heads[0], NULL, 0);
    check(list_first(&heads[0]) == &heads[0]);
}

check_main()
