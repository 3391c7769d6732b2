/* keep/rounds.h: what rounds of use say of memory that is kept for them. */
#include "keep/rounds.h"

#include "check.h"

enum { UNITS_OF_MIB = MIB >> UNIT_SHIFT, LOW = 100 * UNITS_OF_MIB, HIGH = 500 * UNITS_OF_MIB };
#define MS ((uint64_t)1000000)

static rounds_t rounds;
static uint64_t slot;
static uint64_t processor_ns;

static void begin(void)
{
    rounds = (rounds_t){.count = 0};
    slot = 1000;
    processor_ns = 0;
}

static bool use(size_t used)
{
    return rounds_note_use(&rounds, used, 0, slot, processor_ns);
}

/* Use falls and comes back; the round takes so much processor time, and so many slots. */
static void go_round(size_t low, size_t high, uint64_t ns, uint64_t slots)
{
    check(use(low));
    processor_ns += ns;
    slot += slots;
    check(!use(high));
}

static rounds_verdict_t judge(size_t used, size_t kept)
{
    return rounds_judge(&rounds, used, kept, slot, processor_ns);
}

test(nothing_known_speaks_against_what_is_kept)
{
    begin();
    check_eq(judge(0, HIGH), ROUNDS_PAY);
    check(!use(HIGH));
    check_eq(judge(HIGH, HIGH), ROUNDS_PAY);
    check_eq(rounds_lowest(&rounds), SIZE_MAX);
}

/* The page faults of 400 MiB take some 137 ms. */
test(rounds_pay_whose_faults_take_a_tenth_of_the_processor_time)
{
    begin();
    (void)use(HIGH);
    for (unsigned round = 0; round < 5; round++)
        go_round(LOW, HIGH, 1000 * MS, 1);
    (void)use(LOW);
    processor_ns += 1000 * MS;
    check_eq(judge(LOW, HIGH - LOW), ROUNDS_PAY);
    begin();
    (void)use(HIGH);
    for (unsigned round = 0; round < 5; round++)
        go_round(LOW, HIGH, 2000 * MS, 1);
    (void)use(LOW);
    processor_ns += 2000 * MS;
    check_eq(judge(LOW, HIGH - LOW), ROUNDS_ARE_CHEAP);
}

/* What is kept saves no more faults than it has pages. */
test(little_that_is_kept_saves_little)
{
    begin();
    (void)use(HIGH);
    for (unsigned round = 0; round < 5; round++)
        go_round(LOW, HIGH, 1000 * MS, 1);
    (void)use(LOW);
    processor_ns += 1000 * MS;
    check_eq(judge(LOW, (HIGH - LOW) / 2), ROUNDS_ARE_CHEAP);
}

/* The faults of 16 MiB take some 5 ms: a tenth of 55 ms, and a quarter of that of 219 ms. */
test(less_memory_is_worth_it_for_less)
{
    enum { LITTLE = 16 * UNITS_OF_MIB, BASE = UNITS_OF_MIB };
    _Static_assert(PAY_WHOLE == 64 * MIB && PAY_PER_CENT == 10 && REFAULT_GIB_MS == 350, "below");
    for (unsigned is_slow = 0; is_slow <= 1; is_slow++) {
        uint64_t ns = (is_slow ? 260 : 180) * MS;
        begin();
        (void)use(LITTLE + BASE);
        for (unsigned round = 0; round < 5; round++)
            go_round(BASE, LITTLE + BASE, ns, 1);
        (void)use(BASE);
        processor_ns += ns;
        check_eq(judge(BASE, LITTLE), is_slow ? ROUNDS_ARE_CHEAP : ROUNDS_PAY);
    }
}

test(time_in_which_the_program_waits_costs_nothing)
{
    begin();
    (void)use(HIGH);
    for (unsigned round = 0; round < 3; round++)
        go_round(LOW, HIGH, 100 * MS, ROUND_PAY_SLOTS / 4);
    check_eq(judge(LOW, HIGH - LOW), ROUNDS_PAY);
}

test(below_the_lows_from_which_rounds_came_back_their_phase_has_ended)
{
    begin();
    (void)use(HIGH);
    go_round(LOW, HIGH, MS, 1);
    check_eq(rounds_lowest(&rounds), LOW);
    check_eq(judge(LOW, HIGH), ROUNDS_PAY);
    check_eq(judge(LOW - LOW / 4, HIGH), ROUNDS_PAY); /* nearly as low */
    check_eq(judge(LOW / 4, HIGH), ROUNDS_HAVE_ENDED);
    slot += ROUND_END_SLOTS; /* and are forgotten */
    rounds_advance(&rounds, slot);
    check_eq(judge(LOW / 4, HIGH), ROUNDS_PAY);
}

/* The lowest of those remembered counts, and no more than so many are. */
test(one_deep_round_makes_lows_of_all)
{
    begin();
    (void)use(HIGH);
    go_round(0, HIGH, MS, 0);
    for (unsigned round = 1; round < ROUNDS_KNOWN; round++) {
        go_round(LOW, HIGH, MS, 0);
        check_eq(judge(0, HIGH), ROUNDS_PAY);
    }
    go_round(LOW, HIGH, MS, 0);
    check_eq(judge(0, HIGH), ROUNDS_HAVE_ENDED);
}

test(use_that_moves_by_less_than_a_step_makes_no_round)
{
    begin();
    (void)use(HIGH);
    const size_t step = rounds_step(&rounds, 0);
    check_eq(step, HIGH / ROUND_STEP_SHARE);
    for (unsigned round = 0; round < 100; round++) {
        check(!use(HIGH - step + 1));
        check(!use(HIGH));
    }
    check_eq(rounds.count, 0);
    check(use(HIGH - step));
    check(!use(HIGH - 1));
    check_eq(rounds.count, 0);
    check(!use(HIGH));
    check_eq(rounds.count, 1);
}

test(a_program_that_gives_up_its_memory_slowly_makes_no_round)
{
    begin();
    (void)use(HIGH);
    for (size_t used = HIGH; used > LOW; used -= UNITS_OF_MIB) {
        (void)use(used);
        (void)use(used + UNITS_OF_MIB / 2);
    }
    check_eq(rounds.count, 0);
    check_eq(rounds.low, LOW + UNITS_OF_MIB);
}

/* A random walk: what is said agrees with the list of all rounds, kept by hand. */
test(a_round_that_came_back_from_so_low_keeps_its_phase_from_ending)
{
    uint64_t random = 7;
    begin();
    (void)use(HIGH);
    size_t lows[ROUNDS_KNOWN];
    unsigned count = 0;
    for (unsigned step = 0; step < 20000; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const size_t used = (size_t)(random >> 40) % HIGH;
        const unsigned before = rounds.count;
        const size_t low = rounds.low;
        (void)use(used);
        if (rounds.count != before)
            lows[count++ % ROUNDS_KNOWN] = low;
        size_t lowest = SIZE_MAX;
        for (unsigned index = 0; index < count && index < ROUNDS_KNOWN; index++)
            lowest = smaller_of(lowest, lows[index]);
        check_eq(rounds_lowest(&rounds), lowest);
        if (used >= lowest)
            check(judge(used, HIGH) != ROUNDS_HAVE_ENDED);
    }
    check(count > 1000);
}

int main(int argc, char **argv)
{
    return check_run(argc, argv);
}
