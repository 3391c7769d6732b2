/* keep/refaults.h: what is kept, learnt from what was wanted again. A step is a slot. */
#include "keep/refaults.h"

#include "check.h"

enum { DELAY_MS = 899, SLOT_MS = 100, DELAY_SLOTS = BUDGET_SLOTS - 1, USED = 1000, ROUND = 400 };

static refaults_t state;
static uint64_t slot;

static void begin(void)
{
    state = (refaults_t){.slot = 0};
    slot = 1000;
    check_eq(budget_slot_ms(DELAY_MS), SLOT_MS);
    refaults_advance(&state, USED, slot * SLOT_MS, DELAY_MS);
    refaults_note_used(&state, USED, USED);
}

/* The program goes on to use so many units for so many slots. */
static void use(size_t units, unsigned slots)
{
    for (; slots != 0; slots--) {
        refaults_advance(&state, units, ++slot * SLOT_MS, DELAY_MS);
        refaults_note_used(&state, units, units);
    }
}

/* The program frees a round of units. `gone` of them go back and are wanted again after `slots`. */
static void come_and_go(size_t gone, unsigned slots)
{
    refaults_note_used(&state, USED - ROUND, USED);
    refaults_note_gone(&state, gone, slot * SLOT_MS, DELAY_MS);
    use(USED - ROUND, slots);
    (void)refaults_note_wanted(&state, gone);
    refaults_note_used(&state, USED - ROUND, USED);
}

test(what_is_wanted_again_within_the_delay_is_kept_the_next_time)
{
    begin();
    come_and_go(ROUND, DELAY_SLOTS);
    check_eq(state.kept_units, ROUND);
}

test(what_is_wanted_after_the_delay_is_not)
{
    begin();
    come_and_go(ROUND, DELAY_SLOTS + 1);
    check_eq(state.kept_units, 0);
}

test(memory_that_grows_without_having_gone_back_teaches_nothing)
{
    begin();
    check_eq(refaults_note_wanted(&state, ROUND), 0);
    refaults_note_used(&state, USED, USED + ROUND);
    check_eq(state.kept_units, 0);
}

/* What is wanted is counted against what went first; of the rest some may still be wanted. */
test(each_unit_that_went_is_wanted_once)
{
    begin();
    refaults_note_used(&state, USED - ROUND, USED);
    refaults_note_gone(&state, ROUND, slot * SLOT_MS, DELAY_MS);
    check_eq(refaults_note_wanted(&state, ROUND / 4), ROUND - ROUND / 4);
    check_eq(refaults_note_wanted(&state, ROUND * 2), 0);
    check_eq(refaults_note_wanted(&state, ROUND), 0);
    check_eq(state.kept_units, ROUND);
}

/* Whatever goes and comes, it is measured by what the units in use go up and down by. */
test(no_more_is_kept_than_some_swings_of_use)
{
    begin();
    for (unsigned round = 0; round < 20; round++) {
        come_and_go(ROUND * 3, 1);
        check(state.kept_units <= KEEP_SWINGS * ROUND);
    }
    check_eq(state.kept_units, KEEP_SWINGS * ROUND);
}

test(a_delay_without_a_round_ends_it)
{
    begin();
    come_and_go(ROUND, 1);
    use(USED, DELAY_SLOTS);
    check_eq(state.kept_units, ROUND);
    use(USED, 1);
    check_eq(state.kept_units, 0);
}

/* A pause of any length is as good as one of a delay. A clock that was read earlier changes
 * nothing. */
test(time_that_passed_unseen_is_forgotten_as_well)
{
    begin();
    come_and_go(ROUND, 1);
    slot += 100000;
    use(USED, 1);
    check_eq(state.kept_units, 0);
    come_and_go(ROUND, 1);
    refaults_advance(&state, USED, (slot - 1) * SLOT_MS, DELAY_MS);
    check_eq(state.slot, slot);
    check_eq(state.kept_units, ROUND);
}

/* Two threads read the clock, and the later one comes first: what was wanted lately is not idle. */
test(a_budget_forgets_nothing_where_the_clock_was_read_earlier)
{
    budget_t budget = {.slot = 1000};
    for (unsigned index = 0; index < BUDGET_SLOTS; index++) budget.low[index] = 50;
    budget.low[1000 % BUDGET_SLOTS] = 10;
    check_eq(budget_idle(&budget, 40, 60, 999 * SLOT_MS, DELAY_MS, DELAY_MS), 10);
    check_eq(budget.slot, 1000);
}

int main(int argc, char **argv)
{
    return check_run(argc, argv);
}
