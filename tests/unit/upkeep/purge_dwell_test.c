/* upkeep/purge.h: memory does not swing between use and the kernel. How much may go is what nobody
 * wanted for as long as free memory waits. Which pages go is another question: the oldest do. So a
 * page may go soon after it went before, if it was in use meanwhile, but hardly any three times. */
#include "keep/keep.h"
#include "upkeep/purge.h"
#include "unit/fresh.h"

enum { SPANS = 60, SPAN_UNITS = 40, STEPS = 20000, STEP_MS = 200, PLACES = 1 << 16 };

static span_t *spans[SPANS];
static uint64_t purged_ms[PLACES][2]; /* each unit: the last time, and the one before; 0: never */
static size_t purges_seen;
static size_t units_seen;
static size_t soon; /* units that had gone within the wait before */
static size_t too_often; /* that had gone twice */

static void note_purges(uint64_t now_ms)
{
    size_t count = fake_os_count(FAKE_PURGE);
    for (size_t nth = count - purges_seen; nth-- > 0;) {
        const fake_record_t *purge = fake_os_last(FAKE_PURGE, nth);
        for (size_t at = 0; at < purge->size; at += UNIT_SIZE) {
            uint64_t *last_ms = purged_ms[((uintptr_t)purge->address + at) / UNIT_SIZE % PLACES];
            uint64_t since_ms = now_ms - (uint64_t)options.purge_delay_ms;
            units_seen++;
            soon += last_ms[0] > since_ms;
            too_often += last_ms[1] > since_ms;
            last_ms[1] = last_ms[0];
            last_ms[0] = now_ms;
        }
    }
    purges_seen = count;
}

/* Programs that allocate and free at random, with looks in between as upkeep has them. */
static void live(uint64_t *random)
{
    uint64_t now_ms = 10000;
    bool is_zero;
    for (unsigned step = 0; step < STEPS; step++) {
        span_t **span = &spans[next_random(random) % SPANS];
        now_ms += next_random(random) % STEP_MS;
        if (*span == NULL) {
            *span = page_heap_alloc(1 + next_random(random) % SPAN_UNITS, UNIT_SIZE, &is_zero);
            check(*span != NULL);
            memset(span_start(*span), 1, span_size(*span));
        } else {
            page_heap_free(*span, now_ms);
            *span = NULL;
        }
        purge_idle(now_ms);
        note_purges(now_ms);
    }
}

fresh_test(hardly_a_page_is_purged_more_than_twice_within_the_delay)
{
    uint64_t random = check_seed(21);
    initialise();
    options.free_policy = FREE_ADAPTIVE; /* the default */
    live(&random);
    (void)printf("%zu purges of %zu units: %zu had gone within the delay, %zu of them twice\n",
                 purges_seen, units_seen, soon, too_often);
    check(purges_seen > 1000);
    /* What is idle is an amount. A request that no warm span fits takes pages that have gone. */
    check(soon <= units_seen / 5);
    check(too_often <= units_seen / 33);
}

check_main()
