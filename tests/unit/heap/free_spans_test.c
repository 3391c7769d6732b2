/* heap/free_spans.h, by way of the page heap: the order of age, and the law that it keeps. */
#include "heap/free_spans.h"

#include "unit/spans.h"

lawful_test(what_is_clean_after_its_dirty_end_was_cut_off_has_no_age)
{
    span_t *head = alloc(CHUNK_UNITS - 5);
    span_t *tail = alloc(5);
    page_heap_free(head, 1);
    purge_piece_t piece;
    check(page_heap_take_old(1, SIZE_MAX, &piece));
    check_eq(put_back(&piece, true, 1), CHUNK_UNITS - 5);
    page_heap_free(tail, 2);
    check_eq(free_spans_oldest(&heap->free)->dirty_count, 5);
    check(page_heap_give_up(5) != NULL);
    check_eq(heap->free.dirty_units, 0);
    check(free_spans_oldest(&heap->free) == NULL);
}

fresh_test(ages_out_of_order_are_found_out)
{
    initialise();
    span_t *older = alloc(3);
    alloc(1);
    span_t *younger = alloc(3);
    alloc(1);
    page_heap_free(older, 1);
    page_heap_free(younger, 2);
    check(page_heap_is_valid());
    older->freed_ms = 3;
    check(!page_heap_is_valid());
}

check_main()
