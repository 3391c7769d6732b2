/* large/address_tree.h, against an array. */
#include "large/address_tree.h"

#include "unit/fresh.h"

enum { SLOTS = 3000 };
static const size_t slot_size = 1 << 22;

static address_tree_t tree;
static address_range_t ranges[SLOTS];
static bool is_in[SLOTS];

/* Addresses without memory: the tree never looks there. */
static char *slot_start(size_t slot)
{
    return (char *)((uintptr_t)0x7f0000000000 + slot * slot_size);
}

static void insert(size_t slot, size_t size)
{
    ranges[slot].start = slot_start(slot);
    ranges[slot].size = size;
    address_tree_insert(&tree, &ranges[slot]);
    is_in[slot] = true;
}

static void check_slot(size_t slot)
{
    address_range_t *range = is_in[slot] ? &ranges[slot] : NULL;
    const char *start = slot_start(slot);
    size_t size = is_in[slot] ? range->size : slot_size;
    check(address_tree_at(&tree, start) == range);
    check(address_tree_at(&tree, start + size / 2) == range);
    check(address_tree_at(&tree, start + size - 1) == range);
    if (size < slot_size)
        check(address_tree_at(&tree, start + size) == NULL);
}

static size_t depth(const address_range_t *range)
{
    if (range == NULL)
        return 0;
    return 1 + larger_of(depth(range->left), depth(range->right));
}

test(an_empty_tree_has_nothing)
{
    check(address_tree_at(&tree, NULL) == NULL);
    check(address_tree_at(&tree, (void *)UINTPTR_MAX) == NULL);
}

test(every_address_of_a_range_leads_to_it)
{
    uint64_t state = check_seed(1);
    for (unsigned step = 0; step < 60000; step++) {
        size_t slot = next_random(&state) % SLOTS;
        if (is_in[slot]) {
            address_tree_remove(&tree, &ranges[slot]);
            is_in[slot] = false;
        } else {
            insert(slot, next_random(&state) % 2 == 0 ? slot_size : 4096);
        }
        check_slot(slot);
        check_slot(next_random(&state) % SLOTS);
        if (step % 5000 == 0)
            for (slot = 0; slot < SLOTS; slot++)
                check_slot(slot);
    }
    for (size_t slot = 0; slot < SLOTS; slot++)
        if (is_in[slot])
            address_tree_remove(&tree, &ranges[slot]);
    check(tree.root == NULL);
}

/* 2 * ln(n) is what random insertion gives on average, twice as much hardly ever (Devroye 1986). */
test(the_tree_is_flat_in_whatever_order_ranges_come)
{
    for (unsigned falling = 0; falling < 2; falling++) {
        tree.root = NULL;
        for (size_t slot = 0; slot < SLOTS; slot++)
            insert(falling != 0 ? SLOTS - 1 - slot : slot, slot_size);
        check(depth(tree.root) <= 40);
    }
}

check_main()
