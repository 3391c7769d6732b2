/* upkeep/purge.h: nothing goes before its time, everything after it, and only what is dirty. */
#include "keep/keep.h"
#include "upkeep/purge.h"

#include <pthread.h>

#include "heap/span_cache.h"
#include "unit/fresh.h"

static const page_heap_t *const heap = &page_heap;

static bool is_zero;

static span_t *alloc(size_t unit_count)
{
    span_t *span = page_heap_alloc(unit_count, UNIT_SIZE, &is_zero);
    check(span != NULL);
    memset(span_start(span), 1, span_size(span));
    return span;
}

static void check_reads_as(const char *start, size_t size, char value)
{
    for (size_t at = 0; at < size; at++)
        if (start[at] != value)
            check_eq(start[at], value);
}

/* Looks for idle pages as upkeep does, from `*now_ms` on for so long. Returns the bytes purged. */
static size_t look_for(uint64_t *now_ms, uint64_t duration_ms)
{
    size_t bytes = 0;
    for (uint64_t end_ms = *now_ms + duration_ms; *now_ms < end_ms; *now_ms += 50)
        bytes += purge_idle(*now_ms);
    return bytes;
}

fresh_test(nothing_goes_before_the_delay_and_everything_after_it)
{
    initialise();
    span_t *span = alloc(10);
    const char *start = span_start(span);
    uint64_t delay = (uint64_t)options.purge_delay_ms;
    uint64_t now_ms = 500;
    check_eq(purge_idle(now_ms), 0);
    page_heap_free(span, now_ms);
    check_eq(look_for(&now_ms, delay), 0);
    check_reads_as(start, 10 * UNIT_SIZE, 1);
    check_eq(look_for(&now_ms, delay / 4), 10 * UNIT_SIZE);
    check_reads_as(start, 10 * UNIT_SIZE, 0);
    check_eq(look_for(&now_ms, 2 * delay), 0);
    check_eq(fake_os_purged_bytes(), 10 * UNIT_SIZE);
    check_heaps_are_valid();
}

/* However old the oldest part of a free span: the next round wants all of it. */
fresh_test(rounds_that_come_again_keep_their_pages)
{
    initialise();
    enum { SPANS = 20, UNITS = 10, NEVER_USED_AGAIN = 3 };
    span_t *spans[SPANS];
    uint64_t delay = (uint64_t)options.purge_delay_ms;
    uint64_t now_ms = 1000;
    size_t purged = 0;
    for (unsigned round = 0; round < 30; round++) {
        unsigned count = round == 0 ? SPANS : SPANS - NEVER_USED_AGAIN;
        for (unsigned index = 0; index < count; index++)
            spans[index] = alloc(UNITS);
        purged += look_for(&now_ms, delay / 5);
        for (unsigned index = 0; index < count; index++)
            page_heap_free(spans[index], now_ms);
        purged += look_for(&now_ms, delay / 5);
    }
    check_eq(purged, NEVER_USED_AGAIN * UNITS * UNIT_SIZE);
    check_eq(look_for(&now_ms, 2 * delay), (SPANS - NEVER_USED_AGAIN) * UNITS * UNIT_SIZE);
    check_heaps_are_valid();
}

fresh_test(what_was_idle_elsewhere_does_not_wait_again)
{
    initialise();
    span_t *span = alloc(8);
    uint64_t now_ms = 1000;
    check_eq(look_for(&now_ms, 100), 0);
    page_heap_free(span, now_ms);
    purge_note_idle(8);
    check_eq(purge_idle(now_ms), 8 * UNIT_SIZE);
}

fresh_test(a_long_pause_between_looks_counts)
{
    initialise();
    check_eq(purge_idle(1000), 0);
    page_heap_free(alloc(10), 1000);
    check_eq(purge_idle(1001), 0);
    check_eq(purge_idle(100000), 10 * UNIT_SIZE);
}

fresh_test(purged_memory_is_known_to_be_zero)
{
    initialise();
    span_t *span = alloc(10);
    page_heap_free(span, 1);
    purge_everything(2);
    span = page_heap_alloc(10, UNIT_SIZE, &is_zero);
    check(is_zero);
    check_reads_as(span_start(span), span_size(span), 0);
}

fresh_test(clean_units_are_left_alone)
{
    initialise();
    span_t *first = alloc(4);
    span_t *gap = page_heap_alloc(4, UNIT_SIZE, &is_zero);
    span_t *second = alloc(4);
    char *gap_start = span_start(gap);
    page_heap_free(gap, 1);
    check_eq(purge_everything(1), 4 * UNIT_SIZE);
    page_heap_free(first, 2);
    page_heap_free(second, 2); /* all one span now, clean in its middle */
    fake_os_forget_calls();
    check_eq(purge_everything(3), 8 * UNIT_SIZE);
    check_eq(fake_os_count(FAKE_PURGE), 2);
    for (size_t nth = 0; nth < 2; nth++) {
        const fake_record_t *call = fake_os_last(FAKE_PURGE, nth);
        check_eq(call->size, 4 * UNIT_SIZE);
        check(call->address + call->size <= gap_start || call->address >= gap_start + call->size);
    }
}

/* The kernel may have filled a whole huge page for the one slab in it: once nothing of the chunk is
 * in use, nothing of it may stay resident. */
fresh_test(a_chunk_that_may_have_a_huge_page_goes_as_a_whole)
{
    initialise();
    page_heap.is_advised = true;
    span_t *slab = alloc(4);
    const size_t chunk = slab->first_unit / CHUNK_UNITS;
    page_heap_free(slab, 1);
    check_eq(purge_everything(2), 4 * UNIT_SIZE);
    check_eq(fake_os_count(FAKE_PURGE), 1);
    const fake_record_t *call = fake_os_last(FAKE_PURGE, 0);
    check(call->address == unit_address(chunk * CHUNK_UNITS));
    check_eq(call->size, CHUNK_UNITS * UNIT_SIZE);
    check_heaps_are_valid();
}

fresh_test(what_is_in_use_or_was_freed_lately_bounds_the_chunk)
{
    initialise();
    page_heap.is_advised = true;
    span_t *before = alloc(3);
    span_t *old = alloc(4);
    const char *old_start = span_start(old);
    span_t *gap = alloc(5);
    span_t *young = alloc(6);
    const size_t chunk_end = align_up(young->first_unit, CHUNK_UNITS);
    const char *young_start = span_start(young);
    page_heap_free(gap, 1);
    purge_everything(2);
    page_heap_free(old, 3);
    fake_os_forget_calls();
    page_heap_free(young, 4);
    purge_piece_t piece;
    check(page_heap_take_old(4, 4, &piece)); /* `before` is in use */
    check(span_start(piece.span) == old_start);
    check_eq(piece.span->unit_count, 4 + 5); /* with the clean gap, without what was freed at 4 */
    check_eq(piece.span->dirty_count, 4);
    check_eq(put_back(&piece, true, 5), 4);
    check(page_heap_take_old(4, SIZE_MAX, &piece));
    check(span_start(piece.span) == old_start); /* the clean ones before it in its chunk again */
    check_eq(piece.span->first_unit + piece.span->unit_count, chunk_end);
    check_eq(piece.span->dirty_count, 6);
    check_eq(piece.run_count, 1); /* and all in one call */
    check(young_start > old_start);
    check_eq(put_back(&piece, true, 5), 6);
    check_heaps_are_valid();
    page_heap_free(before, 6);
}

fresh_test(what_the_kernel_refuses_stays_and_is_tried_again_later)
{
    initialise();
    uint64_t delay = (uint64_t)options.purge_delay_ms;
    span_t *span = alloc(6);
    const char *start = span_start(span);
    page_heap_free(span, 1);
    purge_note_idle(6);
    fake_os_fail_always(FAKE_PURGE);
    check_eq(purge_idle(1 + delay), 0);
    check_eq(purge_everything(1 + delay), 0);
    check_reads_as(start, 6 * UNIT_SIZE, 1);
    check_eq(heap->free.dirty_units, 6);
    check_heaps_are_valid();
    size_t calls = fake_os_count(FAKE_PURGE);
    check_eq(purge_idle(2 * delay), 0); /* not yet again */
    check_eq(fake_os_count(FAKE_PURGE), calls);
    fake_os_fail_never();
    check_eq(purge_idle(1 + 2 * delay), 6 * UNIT_SIZE);
    check_heaps_are_valid();
}

fresh_test(one_refusal_is_not_the_end)
{
    initialise();
    for (unsigned index = 0; index < 5; index++) {
        span_t *span = alloc(2);
        alloc(1);
        page_heap_free(span, 1);
        check_eq(heap->free.dirty_units, 2);
        fake_os_fail(FAKE_PURGE, 1, 1);
        check_eq(purge_everything(2), 0);
        check_eq(purge_everything(2), 2 * UNIT_SIZE);
    }
}

fresh_test(a_refusal_is_followed_by_ever_longer_pauses)
{
    initialise();
    uint64_t delay = (uint64_t)options.purge_delay_ms;
    uint64_t now_ms = delay;
    page_heap_free(alloc(12), 0);
    purge_note_idle(12);
    for (uint64_t pause = delay; pause < 200000; pause *= 2) {
        uint64_t next_ms = now_ms + smaller_of(pause, SELDOM_PERIOD_MS);
        fake_os_fail(FAKE_PURGE, 1, 1);
        size_t calls = fake_os_count(FAKE_PURGE);
        check_eq(purge_idle(now_ms), 0);
        check_eq(purge_idle(next_ms - 1), 0);
        check_eq(fake_os_count(FAKE_PURGE), calls + 1);
        now_ms = next_ms;
    }
    check_eq(purge_idle(now_ms), 12 * UNIT_SIZE);
    page_heap_free(alloc(6), now_ms);
    purge_note_idle(6);
    fake_os_fail(FAKE_PURGE, 1, 1);
    check_eq(purge_idle(now_ms + delay), 0);
    check_eq(purge_idle(now_ms + 2 * delay), 6 * UNIT_SIZE); /* the pause is short again */
}

fresh_test(who_asks_for_everything_is_not_kept_waiting)
{
    initialise();
    page_heap_free(alloc(6), 0);
    fake_os_fail(FAKE_PURGE, 1, 2);
    check_eq(purge_everything(1), 0);
    check_eq(purge_everything(1), 0);
    check_eq(purge_everything(1), 6 * UNIT_SIZE);
}

/* One locked page in a run. */
fresh_test(a_refused_run_does_not_keep_the_others)
{
    initialise();
    span_t *spans[10];
    for (unsigned index = 0; index < 10; index++) {
        spans[index] = alloc(3);
        check(page_heap_alloc(1, UNIT_SIZE, &is_zero) != NULL);
    }
    span_t *gaps[10];
    for (unsigned index = 0; index < 10; index++)
        gaps[index] = span_at((char *)span_start(spans[index]) + 3 * UNIT_SIZE);
    for (unsigned index = 0; index < 10; index++)
        page_heap_free(gaps[index], 1);
    purge_everything(1);
    for (unsigned index = 0; index < 10; index++)
        page_heap_free(spans[index], 2); /* one free span of ten dirty runs */
    fake_os_fail(FAKE_PURGE, 1, 1);
    check_eq(purge_everything(3), 10 * 3 * UNIT_SIZE); /* the first run in a second piece */
    check_heaps_are_valid();
}

fresh_test(what_is_due_goes_by_as_much_as_the_caller_wants)
{
    initialise();
    uint64_t delay = (uint64_t)options.purge_delay_ms;
    size_t units = 4 * MIB >> UNIT_SHIFT;
    page_heap_free(alloc(units), 1);
    purge_note_idle(units);
    purge_look(1 + delay);
    for (unsigned call = 0; call < 4; call++)
        check_eq(purge_due(units / 4, 1 + delay), units / 4);
    check_eq(purge_due(units, 1 + delay), 0);
}

/* The program wants it before its turn comes. */
fresh_test(what_is_needed_again_is_due_no_more)
{
    initialise();
    uint64_t now_ms = 1000;
    page_heap_free(alloc(100), now_ms);
    purge_note_idle(100);
    purge_look(now_ms);
    check_eq(purge_shared.due_units, 100);
    span_t *span = alloc(100);
    page_heap_free(span, now_ms);
    purge_look(now_ms + 1);
    check_eq(purge_shared.due_units, 0);
}

/* Pages of 64 KiB hold eight units:  |0 to 7|8 to 15|16 to 23|24 … */
fresh_test(of_large_pages_only_whole_ones_go)
{
    fake_os_set_page_size(64 * KIB);
    initialise();
    alloc(1);
    span_t *span = alloc(16); /* 1 to 16: the page of 8 to 15 is whole */
    alloc(1);
    const char *start = span_start(span);
    page_heap_free(span, 1);
    purge_everything(2);
    check_eq(fake_os_purged_bytes(), 64 * KIB);
    check_reads_as(start, 7 * UNIT_SIZE, 1);
    check_reads_as(start + 7 * UNIT_SIZE, 8 * UNIT_SIZE, 0);
    check_reads_as(start + 15 * UNIT_SIZE, UNIT_SIZE, 1);
    check_heaps_are_valid();
}

fresh_test(a_span_without_a_whole_large_page_keeps_no_other_from_going)
{
    fake_os_set_page_size(64 * KIB);
    initialise();
    span_t *small = alloc(4);
    alloc(4);
    span_t *large = alloc(16);
    alloc(1);
    page_heap_free(small, 1);
    page_heap_free(large, 2);
    purge_everything(3);
    check_eq(fake_os_purged_bytes(), 128 * KIB);
}

fresh_test(a_large_page_that_was_purged_is_not_purged_again_and_again)
{
    fake_os_set_page_size(64 * KIB);
    initialise();
    alloc(1);
    span_t *span = alloc(16);
    alloc(1);
    page_heap_free(span, 1);
    for (uint64_t now_ms = 2; now_ms < 10; now_ms++)
        purge_everything(now_ms);
    check_eq(fake_os_count(FAKE_PURGE), 1);
}

/* ---- what it costs ----
 *
 * Work is counted in words of the bitmap of dirty units that were looked at. */

enum { PAIRS = 10000, PAIR_UNITS = 6 };
static span_t *many[2 * PAIRS];

/* One free span, 0.9 GiB long, in which three clean units follow three dirty ones, and so on. */
static void alternate(void)
{
    for (unsigned index = 0; index < 2 * PAIRS; index++) {
        many[index] = page_heap_alloc(PAIR_UNITS / 2, UNIT_SIZE, &is_zero);
        check(many[index] != NULL);
    }
    for (unsigned index = 0; index < 2 * PAIRS; index += 2)
        page_heap_free(many[index], 1);
    purge_everything(2);
    for (unsigned index = 1; index < 2 * PAIRS; index += 2)
        page_heap_free(many[index], 3);
    check_eq(heap->free.dirty_units, PAIRS * PAIR_UNITS / 2);
}

static const size_t bitmap_words = PAIRS * PAIR_UNITS / 64;

fresh_test(to_purge_costs_as_much_as_is_purged)
{
    initialise();
    alternate();
    size_t before = heap->free.looked_words;
    check_eq(purge_everything(4), PAIRS * PAIR_UNITS / 2 * UNIT_SIZE);
    check(heap->free.looked_words - before <= 4 * bitmap_words + 4 * PAIRS);
    check_heaps_are_valid();
}

fresh_test(to_purge_little_by_little_costs_as_much_as_is_purged)
{
    initialise();
    for (unsigned index = 0; index < 2 * PAIRS; index++)
        many[index] = page_heap_alloc(PAIR_UNITS / 2, UNIT_SIZE, &is_zero);
    size_t before = heap->free.looked_words;
    for (unsigned odd = 0; odd < 2; odd++)
        for (unsigned index = odd; index < 2 * PAIRS; index += 2) {
            page_heap_free(many[index], 1 + index);
            size_t allowed = keep_most_units(heap->used_units);
            if (heap->free.dirty_units > allowed)
                purge_oldest_units(heap->free.dirty_units - allowed, 1 + index, 1 + index);
        }
    purge_everything(3 * PAIRS);
    check_eq(heap->free.dirty_units, 0);
    check(heap->free.looked_words - before <= 4 * bitmap_words + 16 * PAIRS);
    check_heaps_are_valid();
}

fresh_test(to_cut_a_little_off_a_long_span_costs_a_little)
{
    initialise();
    alternate();
    size_t before = heap->free.looked_words;
    for (unsigned round = 0; round < 1000; round++)
        check(page_heap_alloc(7, UNIT_SIZE, &is_zero) != NULL);
    check(heap->free.looked_words - before <= 1000 * 8);
}

/* ---- threads ---- */

static void *churn(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument;
    for (uint64_t step = 1; step < 3000; step++) {
        bool zero;
        size_t count = 1 + next_random(&state) % 20;
        span_t *span = page_heap_alloc(count, UNIT_SIZE, &zero);
        char *middle = span_start(span) + span_size(span) / 2;
        check(!zero || *middle == 0);
        *middle = 1;
        page_heap_free(span, step);
    }
    return NULL;
}

static bool stop;

static void *purge_meanwhile(void *argument)
{
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
        purge_everything(1);
    return argument;
}

fresh_test(pages_are_purged_while_others_come_and_go)
{
    initialise();
    pthread_t threads[3];
    check_eq(pthread_create(&threads[0], NULL, purge_meanwhile, NULL), 0);
    for (uintptr_t index = 1; index < 3; index++)
        check_eq(pthread_create(&threads[index], NULL, churn, (void *)index), 0);
    for (unsigned index = 1; index < 3; index++)
        check_eq(pthread_join(threads[index], NULL), 0);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    check_eq(pthread_join(threads[0], NULL), 0);
    check_heaps_are_valid();
    purge_everything(5000);
    check_eq(heap->free.dirty_units, 0);
}

check_main()
