/* A tree of address ranges. See address_tree.h. */
#include "large/address_tree.h"

/* The larger, the nearer to the root. A mixer (splitmix64, Steele et al. 2014), because addresses
 * are often in even steps, which a mere product might turn into even steps again. */
static uint64_t address_range_height(const address_range_t *range)
{
    uint64_t mixed = (uintptr_t)range->start * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

/* Finds the place by height, then hands what hangs there to both sides of the new range. */
void address_tree_insert(address_tree_t *tree, address_range_t *range)
{
    uint64_t own_height = address_range_height(range);
    address_range_t **link = &tree->root;
    while (*link != NULL && address_range_height(*link) >= own_height)
        link = range->start < (*link)->start ? &(*link)->left : &(*link)->right;
    address_range_t *rest = *link;
    *link = range;
    address_range_t **lower = &range->left;
    address_range_t **higher = &range->right;
    while (rest != NULL) {
        if (rest->start < range->start) {
            *lower = rest;
            lower = &rest->right;
            rest = rest->right;
        } else {
            *higher = rest;
            higher = &rest->left;
            rest = rest->left;
        }
    }
    *lower = *higher = NULL;
}

/* Puts what hangs on both sides of the range together in its place. */
void address_tree_remove(address_tree_t *tree, address_range_t *range)
{
    address_range_t **link = &tree->root;
    while (*link != range)
        link = range->start < (*link)->start ? &(*link)->left : &(*link)->right;
    address_range_t *lower = range->left;
    address_range_t *higher = range->right;
    while (lower != NULL && higher != NULL) {
        if (address_range_height(lower) >= address_range_height(higher)) {
            *link = lower;
            link = &lower->right;
            lower = lower->right;
        } else {
            *link = higher;
            link = &higher->left;
            higher = higher->left;
        }
    }
    *link = lower != NULL ? lower : higher;
}

address_range_t *address_tree_at(const address_tree_t *tree, const void *ptr)
{
    address_range_t *range = tree->root;
    while (range != NULL && (uintptr_t)ptr - (uintptr_t)range->start >= range->size)
        range = (const char *)ptr < range->start ? range->left : range->right;
    return range;
}
