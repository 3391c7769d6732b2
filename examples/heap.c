/* A heap for each request: all of it goes at once.
 *
 *   cc heap.c $(pkg-config --cflags --libs hakmem) -o heap && ./heap */
#include <hakmem.h>

#include <stdio.h>
#include <string.h>

typedef struct node {
    struct node *next;
    char text[40];
} node_t;

int main(void)
{
    hakmem_heap_t *request = hakmem_heap_new();
    if (request == NULL)
        return 1;
    node_t *list = NULL;
    for (int number = 0; number < 100000; number++) {
        node_t *node = hakmem_heap_malloc(request, sizeof *node);
        if (node == NULL)
            return 1;
        (void)snprintf(node->text, sizeof node->text, "node %d", number);
        node->next = list;
        list = node;
    }
    printf("the last of them: %s\n", list->text);
    hakmem_heap_destroy(request); /* no walk over the list */

    hakmem_statistics_t statistics;
    (void)hakmem_get_statistics(&statistics);
    printf("in use now: %zu KiB\n", statistics.used / 1024);
    return 0;
}
