/* heap/sparse_chunks.h: chunks that have lost pages get no huge page before they were free. */
#include "heap/sparse_chunks.h"

#include <pthread.h>

#include "base/bits.h"
#include "upkeep/purge.h"
#include "unit/spans.h"

static void begin(void)
{
    initialise();
    options.thp_min_heap_mb = 0;
    options.thp_adaptive = 0;
    span_t *first = alloc(4);
    check(page_heap.is_advised);
    page_heap_free(first, 1);
    check(purge_everything(1) > 0);
    sparse_chunks_set(0, 64 * CHUNK_UNITS, true);
}

static size_t advised(bool wanted)
{
    size_t count = 0;
    for (size_t nth = 0; nth < fake_os_count(FAKE_ADVISE); nth++) {
        const fake_record_t *call = fake_os_last(FAKE_ADVISE, nth);
        check_eq((uintptr_t)call->address % (CHUNK_UNITS * UNIT_SIZE), 0);
        check_eq(call->size, CHUNK_UNITS * UNIT_SIZE);
        count += call->wanted == wanted;
    }
    return count;
}

fresh_test(a_chunk_in_use_in_part_is_told_once)
{
    begin();
    span_t *kept = alloc(4);
    span_t *first = alloc(8);
    span_t *second = alloc(8);
    fake_os_forget_calls();
    page_heap_free(first, 1);
    check(purge_everything(1) > 0);
    page_heap_free(second, 2);
    check(purge_everything(2) > 0);
    check_eq(advised(false), 1);
    check_eq(sparse_chunks_count(), 1);
    page_heap_free(kept, 3);
}

fresh_test(chunks_that_go_as_a_whole_are_not_told)
{
    begin();
    span_t *whole = alloc(3 * CHUNK_UNITS);
    fake_os_forget_calls();
    page_heap_free(whole, 1);
    check(purge_everything(1) > 0);
    check_eq(fake_os_count(FAKE_ADVISE), 0);
    check_eq(sparse_chunks_count(), 0);
}

fresh_test(once_free_and_used_again_it_may_have_one)
{
    begin();
    span_t *kept = alloc(4);
    span_t *gone = alloc(CHUNK_UNITS - 4);
    fake_os_forget_calls();
    page_heap_free(gone, 1);
    check(purge_everything(1) > 0);
    span_t *again = alloc(8); /* beside `kept`: the chunk is still in use in part */
    check_eq(advised(true), 0);
    page_heap_free(again, 2);
    page_heap_free(kept, 2);
    (void)alloc(8);
    check_eq(advised(true), 1);
    check_eq(sparse_chunks_count(), 0);
}

lawful_test(a_heap_without_huge_pages_is_not_told)
{
    (void)alloc(4);
    span_t *gone = alloc(8);
    fake_os_forget_calls();
    page_heap_free(gone, 1);
    check(purge_everything(1) > 0);
    check_eq(fake_os_count(FAKE_ADVISE), 0);
}

fresh_test(runs_name_the_chunks_at_their_ends)
{
    begin();
    (void)alloc(8 * CHUNK_UNITS);
    size_t first = align_up(page_heap.newest[false].first_unit, CHUNK_UNITS);
    sparse_chunks_set(first, 8 * CHUNK_UNITS, true);
    const struct {
        size_t from, count, told;
    } runs[] = {{0, CHUNK_UNITS, 0},      {0, 1, 1},
                {CHUNK_UNITS - 1, 1, 0},  {CHUNK_UNITS - 1, 2, 1},
                {2 * CHUNK_UNITS + 1, 1, 1}, {3 * CHUNK_UNITS, 2 * CHUNK_UNITS, 0},
                {3 * CHUNK_UNITS + 5, 2 * CHUNK_UNITS, 2}};
    for (size_t index = 0; index < sizeof runs / sizeof runs[0]; index++) {
        size_t before = sparse_chunks_count();
        sparse_chunks_note(first + runs[index].from, runs[index].count);
        check_eq(sparse_chunks_count() - before, runs[index].told);
    }
    sparse_chunks_set(first, 8 * CHUNK_UNITS, false);
    sparse_chunks_note(first, 1); /* it may have none anyway */
    check_eq(sparse_chunks_count(), 0);
}

enum { CHUNKS = 8, ROUNDS = 200000 };

static bool is_over;

static void *spare_all(void *unused)
{
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
        sparse_chunks_spare(0, CHUNKS * CHUNK_UNITS);
    return unused;
}

fresh_test(they_are_counted_right_while_they_are_told_anew)
{
    begin();
    pthread_t other;
    check_eq(pthread_create(&other, NULL, spare_all, NULL), 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        sparse_chunks_set(0, CHUNKS * CHUNK_UNITS, true);
        sparse_chunks_set(0, CHUNKS * CHUNK_UNITS, false);
    }
    __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
    check_eq(pthread_join(other, NULL), 0);
    sparse_chunks_set(0, CHUNKS * CHUNK_UNITS, false);
    check_eq(sparse_chunks_count(), 0);
}

check_main()
