/* slab/slab.h: take and give against an array of bools, for every class. */
#include "slab/slab.h"

#include "os/meta.h"
#include "slab/size_class.h"
#include "upkeep/purge.h"
#include "heap/span_cache.h"
#include "unit/fresh.h"

enum { MOST_BLOCKS = 4096 };

static void *taken[MOST_BLOCKS];

static char *block_of(const slab_t *slab, size_t block)
{
    return span_start(&slab->span) + block * size_classes[slab->class].size;
}

static slab_verdict_t give(slab_t *slab, void *block)
{
    slab_verdict_t result;
    unsigned given = slab_give(slab, &block, 1, &result);
    check_eq(given, result == IN_USE);
    return result;
}

lawful_test(a_new_slab_has_every_block_free)
{
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
        slab_t *slab = slab_create(class);
        check(slab != NULL && slab_is_valid(slab));
        check_eq(slab->block_count, size_classes[class].block_count);
        check_eq(slab->free_count, slab->block_count);
        check_eq(slab->class, class);
        check_eq(slab->span.state, SPAN_SLAB);
    }
}

/* Pieces of our own memory that can be had when the kernel refuses more. */
static void provide_pieces(void)
{
    void *pieces[256];
    for (size_t size = 128; size <= 512; size *= 2) {
        for (unsigned index = 0; index < 256; index++)
            pieces[index] = meta_alloc(size);
        for (unsigned index = 0; index < 256; index++)
            meta_free(pieces[index], size);
    }
}

/* The kernel refuses more, and what is free lies between slabs that are full. */
lawful_test(holes_of_any_length_become_slabs)
{
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
        size_t size = size_classes[class].size;
        for (size_t unit_count = 8; unit_count * UNIT_SIZE >= size; unit_count--) {
            bool is_zero;
            span_t *hole = page_heap_alloc(unit_count, UNIT_SIZE, &is_zero);
            provide_pieces();
            fake_os_fail_always(FAKE_MAP_AT);
            for (size_t length = CHUNK_UNITS; length != 0; length /= 2)
                while (page_heap_alloc(length, UNIT_SIZE, &is_zero) != NULL)
                    continue;
            page_heap_free(hole, 1);
            slab_t *slab = slab_create(class);
            check(slab != NULL && slab_is_valid(slab));
            check_eq(slab->span.unit_count, smaller_of(unit_count, size_classes[class].unit_count));
            check_eq(slab->block_count, span_size(&slab->span) / size);
            check_eq(slab_take(slab, taken + slab->block_count, slab->block_count),
                     slab->block_count);
            check_eq(give(slab, block_of(slab, slab->block_count)), NOT_A_BLOCK);
            for (size_t block = slab->block_count; block-- > 0;)
                check_eq(give(slab, taken[block]), IN_USE);
            slab_destroy(slab, 1);
            fake_os_fail_never();
        }
    }
}

lawful_test(the_page_map_knows_every_unit_of_a_slab)
{
    slab_t *slab = slab_create(FIXED_CLASS_COUNT - 1);
    for (size_t unit = 0; unit < slab->span.unit_count; unit++) {
        const char *address = span_start(&slab->span) + unit * UNIT_SIZE;
        check(slab_of(address) == slab && slab_of(address + UNIT_SIZE - 1) == slab);
        check_eq(class_of_unit(unit_of(address)), FIXED_CLASS_COUNT - 1);
    }
    check(slab_of(NULL) == NULL);
    check(slab_of(&slab) == NULL);
    check(slab_of(slab) == NULL);
    check(slab_of((void *)UINTPTR_MAX) == NULL);
    check(slab_of(unit_address(window_unit_count)) == NULL);
}

lawful_test(only_the_first_byte_of_a_block_names_it)
{
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
        slab_t *slab = slab_create(class);
        size_t size = size_classes[class].size;
        check_eq(slab_take(slab, taken + MOST_BLOCKS, MOST_BLOCKS), slab->block_count);
        for (size_t offset = 0; offset < span_size(&slab->span); offset++) {
            bool is_block = offset % size == 0 && offset / size < slab->block_count;
            slab_verdict_t expected = is_block ? IN_USE : NOT_A_BLOCK;
            if (slab_check(slab, span_start(&slab->span) + offset) != expected)
                check_eq(slab_check(slab, span_start(&slab->span) + offset), expected);
        }
        check_eq(give(slab, block_of(slab, 0) + 1), NOT_A_BLOCK);
        check_eq(slab->free_count, 0);
    }
}

lawful_test(what_is_wrong_with_the_next_block_is_told)
{
    slab_t *slab = slab_create(3); /* its tail holds no block */
    slab_verdict_t result;
    check_eq(slab_take(slab, taken + 8, 8), 8);
    void *twice[] = {taken[0], taken[1], taken[0], taken[2]};
    check_eq(slab_give(slab, twice, 4, &result), 2);
    check_eq(result, ALREADY_FREE);
    void *inside[] = {taken[2], block_of(slab, 3) + 1};
    check_eq(slab_give(slab, inside, 2, &result), 1);
    check_eq(result, NOT_A_BLOCK);
    check_eq(give(slab, block_of(slab, slab->block_count)), NOT_A_BLOCK);
    check_eq(slab->free_count, slab->block_count - 5);
    check(slab_is_valid(slab));
}

static void take_some(slab_t *slab, bool *is_free, unsigned count)
{
    unsigned got = slab_take(slab, taken + MOST_BLOCKS, count);
    unsigned block = 0;
    for (unsigned index = 0; index < got; index++, block++) {
        while (!is_free[block])
            block++;
        check(taken[MOST_BLOCKS - 1 - index] == block_of(slab, block));
        is_free[block] = false;
    }
    check(got == count || slab->free_count == 0);
}

/* Gives one block, or some at once and the last of another slab: up to the first that is free. */
static void give_some(slab_t *slab, bool *is_free, void *other, uint64_t *state)
{
    size_t blocks[4];
    void *batch[5];
    const unsigned own = 1 + (unsigned)next_random(state) % 4;
    unsigned expected = 0;
    for (unsigned index = 0; index < own; index++) {
        blocks[index] = next_random(state) % slab->block_count;
        batch[index] = block_of(slab, blocks[index]);
    }
    batch[own] = other;
    for (; expected < own && !is_free[blocks[expected]]; expected++)
        is_free[blocks[expected]] = true;
    slab_verdict_t result;
    check_eq(slab_give(slab, batch, own + (own > 1), &result), expected);
    check_eq(result, expected == own ? IN_USE : ALREADY_FREE);
    for (unsigned index = 0; index < own; index++)
        check_eq(slab_check(slab, batch[index]), is_free[blocks[index]] ? ALREADY_FREE : IN_USE);
}

lawful_test(random_takes_and_gives_agree_with_an_array)
{
    uint64_t state = check_seed(3);
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
        bool is_free[MOST_BLOCKS];
        slab_t *slab = slab_create(class);
        slab_t *other = slab_create(class);
        void *others[1];
        check_eq(slab_take(other, others + 1, 1), 1);
        memset(is_free, true, sizeof is_free);
        for (unsigned step = 0; step < 600; step++) {
            if (next_random(&state) % 4 == 0)
                take_some(slab, is_free, 1 + (unsigned)next_random(&state) % 60);
            give_some(slab, is_free, others[0], &state);
            size_t free_count = 0;
            for (size_t block = 0; block < slab->block_count; block++)
                free_count += is_free[block];
            check_eq(slab->free_count, free_count);
            check(slab_is_valid(slab));
        }
        take_some(slab, is_free, MOST_BLOCKS);
        check_eq(slab_take(slab, taken + 1, 1), 0);
    }
}

lawful_test(a_destroyed_slab_is_free_pages_again)
{
    for (unsigned round = 0; round < 3; round++)
        for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
            slab_t *slab = slab_create(class);
            const char *start = span_start(&slab->span);
            slab_destroy(slab, 1);
            check(slab_of(start) == NULL && span_of(start) == NULL);
            check_eq(class_of_unit(unit_of(start)), 0);
        }
    check_eq(page_heap.used_units + page_heap.slab_units, 0);
}

static void destroy_a_used_slab(void)
{
    initialise();
    slab_t *slab = slab_create(1);
    slab_take(slab, taken + 1, 1);
    slab_destroy(slab, 1);
}

test(a_slab_in_use_may_not_be_destroyed)
{
    char words[256];
    check_eq(fresh_status(destroy_a_used_slab, words, sizeof words), FAKE_ABORT_STATUS);
}

/* Each heap has memory for some slabs of its own, and the kernel gives no more. */
lawful_test(slabs_stand_in_the_other_heap_when_their_own_gets_no_memory)
{
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class += 71) {
        slab_t *slabs[100];
        unsigned count = 0;
        slab_destroy(slab_create(1), 1);
        slab_destroy(slab_create(FIXED_CLASS_COUNT - 1), 1);
        fake_os_fail_always(FAKE_ANY);
        while ((slabs[count] = slab_create(class)) != NULL) {
            memset(span_start(&slabs[count]->span), 1, span_size(&slabs[count]->span));
            check_eq(slab_of(span_start(&slabs[count]->span))->class, class);
            count++;
        }
        const page_heap_t *heap = &page_heap;
        check(heap->mapped_units - heap->used_units < size_classes[class].unit_count);
        check_eq(heap->slab_units, heap->used_units);
        while (count != 0)
            slab_destroy(slabs[--count], 1);
        check_eq(page_heap.slab_units + page_heap.used_units, 0);
        check_heaps_are_valid();
        fake_os_fail_never();
    }
}

lawful_test(cached_blocks_make_way_for_slabs)
{
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
        bool is_zero;
        span_t *span = page_heap_alloc(256, UNIT_SIZE, &is_zero);
        check(span != NULL && span_cache_give(span, 1));
        slab_t *slab = slab_create(class);
        check(slab != NULL);
        check_eq(span_cache_units(), 0);
        slab_destroy(slab, 1);
        span_cache_trim(UINT64_MAX, 1);
        purge_everything(1);
    }
}

lawful_test(a_slab_without_memory_for_pages_is_no_slab)
{
    fake_os_fail_always(FAKE_MAP_AT);
    check(slab_create(1) == NULL);
    fake_os_fail_never();
    check(slab_create(1) != NULL);
}

lawful_test(a_slab_without_memory_for_its_bits_gives_its_pages_back)
{
    check(slab_create(1) != NULL);
    size_t used = page_heap.used_units;
    fake_os_fail_always(FAKE_MAP);
    unsigned created = 0;
    while (slab_create(1) != NULL)
        created++;
    check_eq(page_heap.used_units, used + created * size_classes[1].unit_count);
    check_heaps_are_valid();
    fake_os_fail_never();
    check(slab_create(1) != NULL);
}

/* As central_list_pages.c does. Returns bytes. */
static size_t purge_pages(slab_t *slab, size_t most_bytes)
{
    size_t purged = 0;
    uint32_t run;
    while (purged < most_bytes && (run = slab_take_pages(slab, most_bytes - purged, 1)) != 0) {
        bool is_purged = slab_purge_pages(slab, run);
        slab_return_pages(slab, run, is_purged);
        if (!is_purged)
            break;
        purged += count_bits(run) * os_page_size();
    }
    return purged;
}

/* Blocks on pages that are on their way to the kernel are nobody's, and the slab is not empty. */
lawful_test(pages_on_their_way_keep_the_slab_and_their_blocks)
{
    slab_t *slab = slab_create(size_class_aligned(512, 16));
    const unsigned count = slab->block_count;
    uint32_t run = slab_take_pages(slab, 2 * 4096, 1);
    check_eq(count_bits(run), 2);
    check_eq(slab->free_count, count - 16);
    check_eq(slab_take(slab, taken + count, count), count - 16);
    for (unsigned index = 0; index < count - 16; index++)
        check((size_t)((char *)taken[16 + index] - block_of(slab, 0)) >= 2 * 4096);
    check(slab_is_valid(slab));
    check_eq(slab_take_pages(slab, SIZE_MAX, 1), 0);
    void *lost[2] = {block_of(slab, 1), block_of(slab, 0)};
    slab_verdict_t result;
    check_eq(slab_give(slab, lost, 2, &result), 0);
    check_eq(result, ALREADY_FREE);
    check_eq(slab_check(slab, lost[0]), ALREADY_FREE);
    check_eq(slab_check(slab, block_of(slab, 16)), IN_USE);
    check(slab_purge_pages(slab, run));
    check_eq(slab_return_pages(slab, run, true), 16);
    check_eq(slab->free_count, 16);
    check_eq(slab_purged_bytes(slab), 2 * 4096);
    check(slab_is_valid(slab));
}

/* Of rows of one, three, four and seven idle pages. */
lawful_test(short_runs_of_pages_stay_where_long_ones_are_wanted)
{
    slab_t *slab = slab_create(size_class_aligned(4096, 16));
    const unsigned count = slab->block_count;
    const unsigned in_use[] = {1, 5, 10};
    check(count >= 16);
    check_eq(slab_take(slab, taken + count, count), count);
    for (unsigned block = 0; block < 18 && block < count; block++)
        if (block != in_use[0] && block != in_use[1] && block != in_use[2])
            check_eq(give(slab, block_of(slab, block)), IN_USE);
    const uint32_t first = slab_take_pages(slab, SIZE_MAX, 4);
    check_eq(first, 0xf << 6);
    const uint32_t second = slab_take_pages(slab, SIZE_MAX, 4);
    check_eq(lowest_bit(second), 11);
    check_eq(slab_take_pages(slab, SIZE_MAX, 4), 0);
    check_eq(slab_take_pages(slab, SIZE_MAX, 1), 1);
    check_eq(slab_take_pages(slab, SIZE_MAX, 2), 0x7 << 2);
}

/* Eight blocks of 512 bytes fill a page. */
lawful_test(pages_without_a_block_in_use_go_and_come_back)
{
    unsigned class = size_class_aligned(512, 16);
    slab_t *slab = slab_create(class);
    check_eq(size_classes[class].size, 512);
    check_eq(slab_take(slab, taken + slab->block_count, slab->block_count), slab->block_count);
    for (size_t block = 0; block < slab->block_count; block++)
        memset(block_of(slab, block), 7, 512);
    check_eq(purge_pages(slab, SIZE_MAX), 0);          /* all in use */
    for (size_t block = 8; block < 8 + 8 + 7; block++) /* a page and the most of the next */
        check_eq(give(slab, block_of(slab, block)), IN_USE);
    check_eq(purge_pages(slab, SIZE_MAX), 4096);
    check_eq(purge_pages(slab, SIZE_MAX), 0); /* not again */
    check_eq(slab_purged_bytes(slab), 4096);
    const fake_record_t *call = fake_os_last(FAKE_PURGE, 0);
    check(call->address == block_of(slab, 8) && call->size == 4096);
    check_eq(*block_of(slab, 7), 7);
    check_eq(*block_of(slab, 23), 7);
    check(slab_is_valid(slab) && slab_has_resident(slab));
    check_eq(slab_take(slab, taken + 9, 9), 7); /* those that cost no page fault, and no others */
    for (size_t block = 0; block < 7; block++)
        check(taken[8 - block] == block_of(slab, 16 + block));
    check(!slab_has_resident(slab) && slab->free_count == 8);
    check_eq(slab_take(slab, taken + 1, 1), 1); /* the lowest address first */
    check(taken[0] == block_of(slab, 8) && *(char *)taken[0] == 0);
    check(slab_has_resident(slab)); /* on the page that is back */
    check_eq(slab_purged_bytes(slab), 0);
    check_eq(give(slab, taken[0]), IN_USE);
    fake_os_fail(FAKE_PURGE, 1, 1);
    check_eq(purge_pages(slab, SIZE_MAX), 0);
    check_eq(purge_pages(slab, SIZE_MAX), 4096); /* what was refused is tried again */
}

/* Of each class. A block that lies in two pages has a page fault before it if one of them went. */
lawful_test(blocks_on_pages_that_hold_memory_are_handed_out_first)
{
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
        slab_t *slab = slab_create(class);
        unsigned count = slab->block_count;
        size_t size = size_classes[class].size;
        check_eq(slab_take(slab, taken + count, count), count);
        for (size_t block = 0; block < count; block++) /* a quarter, in the middle, is in use */
            if (block < count / 3 || block > count / 3 + count / 4)
                check_eq(give(slab, block_of(slab, block)), IN_USE);
        check(purge_pages(slab, 5 * 4096) != 0);
        uint32_t purged = slab->purged;
        unsigned free_count = slab->free_count;
        bool has_resident = slab_has_resident(slab);
        unsigned first = slab_take(slab, taken + free_count, free_count);
        for (unsigned index = 0; index < first; index++) {
            size_t offset = (size_t)((char *)taken[free_count - 1 - index] - block_of(slab, 0));
            bool faults = false;
            for (size_t page = offset / 4096; page <= (offset + size - 1) / 4096; page++)
                faults |= (purged >> page & 1) != 0;
            check(faults != has_resident);
        }
        check_eq(first + slab->free_count, free_count);
        check(slab_is_valid(slab) && (slab->free_count == 0 || has_resident));
        if (has_resident)
            check(slab->purged == purged && !slab_has_resident(slab));
    }
}

lawful_test(what_a_slab_has_given_back_is_clean_when_the_slab_goes)
{
    const page_heap_t *heap = &page_heap;
    slab_t *slab = slab_create(size_class_aligned(512, 16));
    const size_t first = slab->span.first_unit;
    check_eq(slab->span.unit_count, SLAB_SHORTEST >> UNIT_SHIFT);
    check_eq(slab_take(slab, taken + slab->block_count, slab->block_count), slab->block_count);
    memset(span_start(&slab->span), 7, span_size(&slab->span));
    for (size_t block = 1; block < slab->block_count; block++)
        check_eq(give(slab, block_of(slab, block)), IN_USE);
    check_eq(purge_pages(slab, SIZE_MAX), 15 * 4096);
    check_eq(give(slab, block_of(slab, 0)), IN_USE);
    slab_destroy(slab, 1);
    check_eq(heap->free.dirty_units, 1); /* only the unit of the page that stayed */
    check(page_heap_is_valid());
    bool is_zero;
    span_t *span = page_heap_alloc(SLAB_SHORTEST >> UNIT_SHIFT, UNIT_SIZE, &is_zero);
    check_eq(span->first_unit, first);
    check(!is_zero);
    check_eq(span_start(span)[4095], 7);
    check_eq(span_start(span)[4096], 0);
}

lawful_test(no_more_pages_go_than_asked_for)
{
    slab_t *slab = slab_create(size_class_aligned(512, 16));
    check_eq(purge_pages(slab, 4097), 8192);
    check_eq(purge_pages(slab, 4096), 4096);
    check_eq(purge_pages(slab, SIZE_MAX), 64 * KIB - 3 * 4096);
    check_eq(fake_os_count(FAKE_PURGE), 3); /* neighbours in one call */
}

/* Each block of each class in turn is the one in use. */
lawful_test(a_page_of_a_block_in_use_never_goes)
{
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class += 5) {
        slab_t *slab = slab_create(class);
        size_t size = size_classes[class].size;
        unsigned count = slab->block_count;
        check_eq(slab_take(slab, taken + count, count), count);
        for (size_t block = 0; block < count; block++)
            if (block != count / 3)
                check_eq(give(slab, block_of(slab, block)), IN_USE);
        memset(block_of(slab, count / 3), 9, size);
        check(purge_pages(slab, SIZE_MAX) > 0);
        for (size_t at = 0; at < size; at++)
            check_eq(block_of(slab, count / 3)[at], 9);
        check(slab_is_valid(slab));
    }
}

check_main()
