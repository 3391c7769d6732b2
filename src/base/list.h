/* Doubly linked ring of nodes embedded in structures. The owner of the head locks; nothing here
 * does. An unlinked node points at itself, so removing it twice is harmless. A head of zeroes is an
 * empty ring: arrays of heads cost no memory until they are used. */
#ifndef HAKMEM_BASE_LIST_H
#define HAKMEM_BASE_LIST_H

#include "base/types.h"

typedef struct list_node {
    struct list_node *next;
    struct list_node *previous;
} list_node_t;

#define LIST_ITEM(node, type, member) ((type *)(void *)((char *)(node) - offsetof(type, member)))

static inline void list_init(list_node_t *node)
{
    node->next = node;
    node->previous = node;
}

static inline bool list_is_empty(const list_node_t *head)
{
    return head->next == NULL || head->next == head;
}

static inline void list_insert_after(list_node_t *where, list_node_t *node)
{
    node->next = where->next;
    node->previous = where;
    where->next->previous = node;
    where->next = node;
}

/* The nodes of a ring in order: for (node = list_first(head); node != head; node = node->next). */
static inline list_node_t *list_first(list_node_t *head)
{
    return head->next == NULL ? head : head->next;
}

static inline void list_push_front(list_node_t *head, list_node_t *node)
{
    if (head->next == NULL)
        list_init(head);
    list_insert_after(head, node);
}

static inline void list_push_back(list_node_t *head, list_node_t *node)
{
    if (head->next == NULL)
        list_init(head);
    list_insert_after(head->previous, node);
}

static inline void list_remove(list_node_t *node)
{
    node->next->previous = node->previous;
    node->previous->next = node->next;
    list_init(node);
}

#endif
