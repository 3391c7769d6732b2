/* heap/huge_page_cost.h: whether huge pages pay, from what first touches cost. */
#include "heap/huge_page_cost.h"

#include "check.h"

enum { SMALL_NS = 400000, QUICK_NS = 60000, SLOW_NS = 5000000 };

static huge_page_cost_t cost;

static void begin(void)
{
    cost = (huge_page_cost_t){0};
    huge_page_cost_note_small(&cost, SMALL_NS);
}

test(who_knows_nothing_takes_huge_pages)
{
    cost = (huge_page_cost_t){0};
    check(huge_pages_pay(&cost));
    huge_page_cost_note_huge(&cost, SLOW_NS); /* what small ones cost is not known */
    check(huge_pages_pay(&cost));
    check_eq(huge_page_cost_chunks(&cost, 3), 3);
}

test(huge_pages_that_are_at_hand_are_used)
{
    begin();
    for (unsigned touch = 0; touch < 100; touch++) {
        check_eq(huge_page_cost_chunks(&cost, 5), 5);
        huge_page_cost_note_huge(&cost, QUICK_NS);
    }
}

test(one_slow_page_among_quick_ones_changes_nothing)
{
    begin();
    for (unsigned touch = 0; touch < 100; touch++) {
        huge_page_cost_note_huge(&cost, touch % 8 == 7 ? 1000 * (uint64_t)SLOW_NS : QUICK_NS);
        check(huge_pages_pay(&cost));
    }
}

test(slow_ones_end_it_and_trials_grow_rare)
{
    begin();
    huge_page_cost_note_huge(&cost, SLOW_NS);
    check(!huge_pages_pay(&cost));
    size_t last = 0;
    for (unsigned trial = 0; trial < 10; trial++) {
        size_t chunks = 0;
        while (huge_page_cost_chunks(&cost, 1) == 0)
            chunks++;
        check(chunks >= HUGE_PAGE_REST && chunks <= HUGE_PAGE_MOST_REST && chunks >= last);
        last = chunks;
        huge_page_cost_note_huge(&cost, SLOW_NS);
    }
    check_eq(last, HUGE_PAGE_MOST_REST);
}

test(a_trial_takes_one_chunk_of_a_long_growth)
{
    begin();
    huge_page_cost_note_huge(&cost, SLOW_NS);
    check_eq(huge_page_cost_chunks(&cost, 30), 0); /* small ones first */
    check_eq(huge_page_cost_chunks(&cost, 30), 1);
}

test(trials_that_succeed_bring_them_back)
{
    begin();
    for (unsigned touch = 0; touch < 20; touch++)
        huge_page_cost_note_huge(&cost, SLOW_NS);
    unsigned trials = 0;
    for (; !huge_pages_pay(&cost); trials++)
        huge_page_cost_note_huge(&cost, QUICK_NS);
    check(trials <= 8);
    check_eq(huge_page_cost_chunks(&cost, 7), 7);
}

test(who_doubts_begins_with_small_pages_and_tries_a_huge_one)
{
    begin();
    huge_page_cost_doubt(&cost);
    check(!huge_pages_pay(&cost));
    check_eq(huge_page_cost_chunks(&cost, HUGE_PAGE_REST), 0);
    check_eq(huge_page_cost_chunks(&cost, 5), 1);
    huge_page_cost_note_huge(&cost, QUICK_NS);
    check(huge_pages_pay(&cost)); /* one trial is enough: nothing spoke against them but a doubt */
    check_eq(huge_page_cost_chunks(&cost, 5), 5);
}

test(in_doubt_nothing_is_tried_before_there_is_something_to_compare_with)
{
    cost = (huge_page_cost_t){0};
    huge_page_cost_doubt(&cost);
    for (unsigned growth = 0; growth < 3; growth++)
        check_eq(huge_page_cost_chunks(&cost, 50), 0);
    huge_page_cost_note_small(&cost, SMALL_NS);
    check_eq(huge_page_cost_chunks(&cost, 50), 1);
    huge_page_cost_note_huge(&cost, SLOW_NS);
    check(!huge_pages_pay(&cost));
}

test(doubts_that_prove_right_make_trials_rare)
{
    begin();
    huge_page_cost_doubt(&cost);
    check_eq(huge_page_cost_chunks(&cost, HUGE_PAGE_REST), 0);
    check_eq(huge_page_cost_chunks(&cost, 1), 1);
    huge_page_cost_note_huge(&cost, SLOW_NS);
    check(!huge_pages_pay(&cost));
    check_eq(huge_page_cost_chunks(&cost, 2 * HUGE_PAGE_REST), 0);
    check_eq(huge_page_cost_chunks(&cost, 1), 1);
}

test(small_pages_that_grow_slow_bring_them_back_too)
{
    begin();
    huge_page_cost_note_huge(&cost, 2 * SMALL_NS);
    check(!huge_pages_pay(&cost));
    for (unsigned touch = 0; touch < 20; touch++)
        huge_page_cost_note_small(&cost, 2 * SMALL_NS);
    check(huge_pages_pay(&cost));
}

check_main()
