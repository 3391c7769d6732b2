/* span/break_even.h: how long to wait, learnt from the curve of what is used. A step is a slot. */
#include "span/break_even.h"

#include <stdlib.h>

#include "check.h"

enum {
    DELAY_MS = 899,
    SLOT_MS = 100,
    DELAY_SLOTS = BUDGET_SLOTS - 1,
    FIRST_MS = 3 * SLOT_MS, /* a third of the delay */
    LEVELS = 64
};

static break_even_t state;
static uint64_t slot;

static void begin(void)
{
    state = (break_even_t){0};
    slot = 1000;
    check_eq(budget_slot_ms(DELAY_MS), SLOT_MS);
}

/* So many are used for so many slots. Returns the wait in the end. */
static uint64_t use(size_t units, unsigned slots)
{
    uint64_t wait = 0;
    while (slots-- != 0)
        wait = break_even_wait(&state, units, slot++ * SLOT_MS, DELAY_MS);
    return wait;
}

test(who_only_grows_learns_nothing)
{
    begin();
    check_eq(use(100, 1), FIRST_MS);
    check_eq(use(5000, 30), FIRST_MS);
    check_eq(use(10000, 1000), FIRST_MS);
}

test(free_memory_waits_a_third_of_the_delay_before_anything_is_learnt)
{
    begin();
    use(1000, 20);
    check_eq(use(10, 2), FIRST_MS);
}

/* What never comes back has cost nobody a page fault. */
test(what_a_program_gives_up_for_good_teaches_no_long_wait)
{
    begin();
    for (size_t units = 100000; units > 100; units = units / 10 * 9)
        check(use(units, 2) <= FIRST_MS);
    check_eq(use(100, DELAY_SLOTS), SLOT_MS);
}

test(what_comes_again_after_more_than_a_delay_had_better_go_at_once)
{
    begin();
    for (unsigned round = 0; round < 3; round++) {
        use(1000, 5);
        use(10, 3 * DELAY_SLOTS);
    }
    use(1000, 5);
    check_eq(use(10, 1), SLOT_MS);
}

test(what_comes_again_within_a_delay_stays)
{
    begin();
    use(1000, 3);
    use(10, DELAY_SLOTS - 2); /* once it went, and was missed */
    for (unsigned round = 0; round < 50; round++) {
        check_eq(use(1000, 3), DELAY_MS);
        check_eq(use(10, DELAY_SLOTS - 2), DELAY_MS);
    }
}

test(what_comes_again_at_once_stays_and_the_rest_need_not_wait)
{
    begin();
    uint64_t longest = 0;
    for (unsigned round = 0; round < 30; round++) {
        for (unsigned turn = 0; turn < 20; turn++) { /* work, in short rounds */
            use(1000, 1);
            use(500, 4);
        }
        use(10, 4 * DELAY_SLOTS); /* rest */
        use(1000, 1);
        longest = use(500, 1);
    }
    check(longest > SLOT_MS && longest < DELAY_MS);
}

test(habits_that_change_are_learnt_anew)
{
    begin();
    for (unsigned round = 0; round < 10; round++) {
        use(1000, 5);
        use(10, 3 * DELAY_SLOTS);
    }
    for (unsigned round = 0; round < 10; round++) {
        use(1000, 3);
        use(10, 3);
    }
    check(use(10, 1) >= 3 * SLOT_MS);
}

/* In slots, after work and rest that `draw` decides; times and amounts in other units. */
static uint64_t slots_after(unsigned draw, size_t units, uint64_t times)
{
    uint64_t now = 1000;
    uint64_t wait = 0;
    srand(draw);
    state = (break_even_t){0};
    for (unsigned turn = 0; turn < 200; turn++) {
        now += 1 + (unsigned)rand() % draw;
        size_t used = (size_t)rand() % LEVELS >> turn % 2 * 4;
        wait = break_even_wait(&state, used * units, now * times * SLOT_MS,
                               (DELAY_MS + 1) * times - 1);
    }
    return wait / (times * SLOT_MS);
}

test(units_of_time_and_of_memory_change_no_decision)
{
    bool seen[DELAY_SLOTS + 1] = {false};
    for (unsigned draw = 1; draw <= 40; draw++) {
        uint64_t slots = slots_after(draw, 1, 1);
        check_eq(slots_after(draw, 1000, 1), slots);
        check_eq(slots_after(draw, 1, 7), slots);
        check(slots <= DELAY_SLOTS);
        seen[slots] = true;
    }
    check(seen[DELAY_MS / SLOT_MS] && seen[1]); /* it was not the same wait each time */
}

test(a_long_time_without_a_look_is_no_use_at_all)
{
    begin();
    use(1000, 5);
    slot += 100000000;
    check_eq(use(1000, 1), FIRST_MS);
    check_eq(use(10, 1), FIRST_MS);
}

/* ---- against somebody who knows the future ---- */

static size_t curve[20000];
static unsigned curve_length;

static void go_on(size_t units, unsigned slots)
{
    while (slots-- != 0 && curve_length < sizeof curve / sizeof *curve)
        curve[curve_length++] = units;
}

/* What it costs to hold as long as break_even_wait says. */
static uint64_t cost_of_learning(void)
{
    uint64_t cost = 0;
    size_t held = 0;
    begin();
    for (unsigned at = 0; at < curve_length; at++) {
        uint64_t wait = use(curve[at], 1) / SLOT_MS;
        size_t kept = 0;
        for (unsigned back = 0; back <= wait && back <= at; back++)
            kept = larger_of(kept, curve[at - back]);
        kept = larger_of(smaller_of(kept, held), curve[at]);
        cost += (held > kept ? held - kept : 0) * DELAY_SLOTS + kept - curve[at];
        held = kept;
    }
    return cost;
}

/* Each unit is held through a gap in its use, or given back at its start: the cheaper of both. */
static uint64_t least_cost(void)
{
    uint64_t cost = 0;
    for (size_t level = 0; level < LEVELS; level++) {
        unsigned gap = 0;
        bool was_used = false;
        for (unsigned at = 0; at <= curve_length; at++) {
            bool is_used = at < curve_length && curve[at] > level;
            if (is_used || at == curve_length) {
                cost += was_used ? smaller_of(gap, DELAY_SLOTS) : 0;
                gap = 0;
            } else {
                gap++;
            }
            was_used |= is_used;
        }
    }
    return cost;
}

/* Of the least that who knew the future would pay. Twice that is what one wait of a delay may cost
 * (ski rental); learning gains where habits last. */
static void check_cost(double most)
{
    uint64_t cost = cost_of_learning();
    uint64_t least = least_cost();
    (void)printf("%.2f of the least cost\n", (double)cost / (double)least);
    check((double)cost <= most * (double)least);
}

test(steady_habits_cost_little_more_than_the_least)
{
    curve_length = 0;
    for (unsigned round = 0; round < 400; round++) {
        go_on(LEVELS, 6);
        go_on(4, 30);
    }
    check_cost(1.25);
}

test(whatever_comes_it_costs_no_more_than_sixteen_tenths_of_the_least)
{
    for (unsigned seed = 1; seed <= 40; seed++) {
        srand(seed);
        curve_length = 0;
        while (curve_length < sizeof curve / sizeof *curve) {
            unsigned longest = 1 + (unsigned)rand() % 40;
            for (unsigned turn = (unsigned)rand() % 60; turn != 0; turn--) {
                go_on((size_t)rand() % (LEVELS + 1), 1 + (unsigned)rand() % 5);
                go_on((size_t)rand() % 8, 1 + (unsigned)rand() % longest);
            }
        }
        check_cost(1.6);
    }
}

/* Gaps are as long as hurts the wait that was taken: a little longer than it. */
test(an_adversary_gets_no_more_than_twice_the_least)
{
    curve_length = 0;
    begin();
    while (curve_length + 20 < sizeof curve / sizeof *curve) {
        uint64_t wait = use(LEVELS, 1);
        go_on(LEVELS, 1);
        for (uint64_t left = wait / SLOT_MS + 2; left != 0; left--) {
            use(0, 1);
            go_on(0, 1);
        }
    }
    check_cost(2.0);
}

check_main()
