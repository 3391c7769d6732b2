/* slab/central_list_pages.c: in which order slabs are filled after a look at their pages, and which
 * classes are sparse. */
#include "slab/central_list.h"

#include "options/tuning.h"
#include "slab/slab.h"
#include "unit/fresh.h"

enum { MOST = 20000 };

static void *blocks[MOST];
static uint64_t now_ms = 10000;

static unsigned take(unsigned class, unsigned count)
{
    return central_list_take(class, blocks + count, count);
}

static size_t blocks_per_slab(unsigned class)
{
    return size_classes[class].block_count;
}

static slab_t *slab_filled(unsigned class, unsigned number)
{
    return slab_of(blocks[number * blocks_per_slab(class)]);
}

static size_t look_for(uint64_t wait_ms)
{
    size_t purged = 0;
    for (uint64_t end_ms = now_ms + wait_ms; now_ms < end_ms; now_ms += PURGE_PERIOD_MS) {
        central_lists_look(now_ms);
        purged += central_lists_purge_due(SIZE_MAX);
    }
    return purged;
}

static uint64_t delay(void)
{
    return (uint64_t)options.purge_delay_ms;
}

/* A block of each page stays in use, so that no page goes. */
fresh_test(after_a_look_at_pages_blocks_come_from_the_fullest_slabs)
{
    static const size_t parts[] = {88, 25, 63, 38, 75, 13, 50}; /* per cent that becomes free */
    initialise();
    unsigned class = size_class_aligned(256, 16);
    const size_t in_slab = blocks_per_slab(class);
    const unsigned count = sizeof parts / sizeof *parts;
    check_eq(take(class, count * (unsigned)in_slab), count * in_slab);
    for (size_t index = 0; index < count * in_slab; index++)
        if (index % 16 != 0 && index % 16 <= parts[index / in_slab] * 16 / 100)
            central_list_give(class, &blocks[index], 1);
    check_eq(central_lists_purge_pages(SIZE_MAX), 0);
    size_t before = 0;
    for (size_t more = central_list_statistics(class).free_count; more != 0; more--) {
        void *block;
        size_t slab = 0;
        check_eq(central_list_take(class, &block + 1, 1), 1);
        while (slab_filled(class, (unsigned)slab) != slab_of(block))
            slab++;
        check(parts[slab] >= before);
        before = parts[slab];
    }
    check(central_lists_are_valid());
}

/* 30 slabs, of which one is enough. */
lawful_test(who_ends_a_walk_early_leaves_the_emptiest_slabs_behind)
{
    unsigned class = size_class_aligned(1024, 16);
    const size_t in_slab = blocks_per_slab(class);
    check_eq(take(class, 30 * (unsigned)in_slab), 30 * in_slab);
    for (size_t slab = 0; slab < 30; slab++)
        for (size_t index = 0; index < in_slab - 1 - slab % 2; index++)
            central_list_give(class, &blocks[slab * in_slab + index], 1);
    check(central_lists_purge_pages(4096) >= 4096);
    void *block;
    check_eq(central_list_take(class, &block + 1, 1), 1);
    check_eq(slab_purged_bytes(slab_of(block)), 0);
}

/* Four blocks fill a page; of four pages one is in use. */
lawful_test(a_class_is_sparse_while_most_of_its_memory_is_free)
{
    unsigned class = size_class_aligned(1024, 16);
    check_eq(take(class, 8000), 8000);
    look_for(PURGE_PERIOD_MS);
    check(!central_list_is_sparse(class));
    for (unsigned index = 0; index < 8000; index++)
        if (index % 16 >= 4)
            central_list_give(class, &blocks[index], 1);
    look_for(PURGE_PERIOD_MS);
    check(central_list_is_sparse(class));
    look_for(delay() * 2); /* pages that went are no free memory */
    check(central_list_statistics(class).purged_bytes > 5 * MIB);
    check(!central_list_is_sparse(class));
    unsigned other = size_class_aligned(48, 16);
    check_eq(take(other, 2), 2); /* nearly all of a slab is free, which is little */
    look_for(PURGE_PERIOD_MS);
    check(!central_list_is_sparse(other));
}

/* Units are shorter than such pages: a slab that began inside one would have no page to give. */
static void check_pages_go(size_t page)
{
    fake_os_set_page_size(page);
    initialise();
    bool is_zero;
    check(page_heap_alloc(1, UNIT_SIZE, &is_zero) != NULL);
    slab_t *slab = slab_create(size_class_aligned(512, 16));
    check(is_aligned(span_start(&slab->span), page));
    uint32_t run = slab_take_pages(slab, SIZE_MAX, 1);
    check(run != 0 && slab_purge_pages(slab, run));
}

fresh_test(slabs_begin_on_a_page_of_16_kib)
{
    check_pages_go(16 * KIB);
}

fresh_test(slabs_begin_on_a_page_of_64_kib)
{
    check_pages_go(64 * KIB);
}

check_main()
