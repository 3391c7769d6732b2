/* Which strategy costs a program least, found out by trying: pure arithmetic, in which times,
 * counts and the price of memory are arguments. The same epochs bring the same decisions.
 *
 * A strategy changes tuning values by doublings (policy/strategy.h). The incumbent plays matches
 * against challengers that have won before, or differ from it by one step of one value. A match
 * has rounds of four epochs, incumbent, challenger, challenger, incumbent, so that what grows or
 * shrinks meanwhile weighs on both alike:
 *
 *   OFF ──▶ LEARN ──match won──▶ CANARY ──as promised──▶ LEARN … ──no step is better──▶ FROZEN
 *             ▲ ◀────guard broken, or dearer: rolled back──┘                               │
 *             └───────────────── drift: first the default, then learn again ◀──────────────┘
 *
 * A round is won by who costs clearly less, a match by Wald's sequential test over its rounds, and
 * the winner takes rating from the loser (Elo, "The Rating of Chessplayers", 1978). A guard that
 * breaks ends a trial at once, and the strategy is not tried again for a while, each time for twice
 * as long. Costs are nanoseconds of processor time in a second of the clock. */
#ifndef HAKMEM_LEARN_TRIAL_H
#define HAKMEM_LEARN_TRIAL_H

#include "base/types.h"
#include "policy/strategy.h"
#include "policy/tuning_learn.h"

typedef enum trial_state {
    TRIAL_OFF,
    TRIAL_LEARN,
    TRIAL_CANARY,
    TRIAL_FROZEN,
    TRIAL_STATE_COUNT
} trial_state_t;

/* What was observed while one strategy ran. */
typedef struct trial_epoch {
    uint64_t ms;          /* how long it lasted */
    uint64_t misses;      /* of thread caches */
    uint64_t slab_misses; /* those among them that slabs served */
    uint64_t fresh_kib;   /* pages that had to be made by the kernel, or made again */
    uint64_t purge_ns;    /* that giving pages back took */
    uint64_t idle_kib_ms; /* memory held free, times how long */
    uint64_t idle_kib;    /* held free at the last look */
    uint64_t used_kib;    /* in use at the last look */
    uint64_t peak_kib;    /* the most that was in use at one look */
    uint64_t taken_kib;   /* by how much use rose between looks, all rises together */
    uint64_t refusals;    /* requests that the kernel refused; one more where a limit is near */
} trial_epoch_t;

typedef enum trial_reason {
    REASON_NONE,
    REASON_CHEAPER,
    REASON_DEARER,
    REASON_LEVEL,    /* no difference was found */
    REASON_HELD,     /* guard: memory */
    REASON_FRESH,    /* guard: fresh pages, each of them a page fault */
    REASON_COST,     /* guard: processor time */
    REASON_REFUSED,  /* guard: a request that the kernel refused, or a limit that is near */
    REASON_PROMISED, /* as cheap alone as in its match */
    REASON_TRIED,    /* every step from the incumbent was tried */
    REASON_COUNT
} trial_reason_t;

typedef enum trial_event {
    EVENT_WON, /* a match, by the challenger */
    EVENT_LOST,
    EVENT_DRAWN,
    EVENT_PROMOTED, /* the canary is the incumbent */
    EVENT_ROLLED_BACK,
    EVENT_FROZEN,
    EVENT_DRIFTED, /* the default is the incumbent, until more is known */
    EVENT_COUNT
} trial_event_t;

/* A decision. */
typedef struct trial_record {
    uint64_t epoch; /* how many there were before */
    uint64_t cost;  /* of the strategy, and what it was compared with; 0: unknown */
    uint64_t other_cost;
    strategy_t strategy;
    strategy_t other; /* the incumbent, where there is one beside it */
    uint8_t event;    /* trial_event_t */
    uint8_t reason;   /* trial_reason_t */
} trial_record_t;

typedef struct contender {
    strategy_t strategy;
    bool is_known;      /* the place is taken */
    bool was_tried;     /* against this incumbent */
    uint8_t rollbacks;  /* how often, LEARN_QUARANTINE_DOUBLINGS at most */
    int32_t rating;     /* Elo */
    uint32_t age;       /* epochs in which it ran */
    uint32_t matches;   /* that it played, */
    uint32_t wins;      /* and won */
    uint64_t quarantined_until; /* so many epochs are over */
} contender_t;

typedef struct trial_match {
    uint64_t costs[2];      /* of all rounds: incumbent, challenger */
    uint64_t round_cost[2]; /* of this round */
    trial_epoch_t base;     /* the incumbent's last epoch: for guards */
    uint64_t base_cost;
    uint64_t peak_kib; /* the most in use since then */
    unsigned turn; /* of the four of a round */
    unsigned rounds;
    unsigned won;
    unsigned lost;
    int sum; /* of the sequential test */
} trial_match_t;

typedef struct trial {
    trial_state_t state;
    uint64_t price;    /* option of that name: milliseconds for a GiB in a second */
    uint64_t epochs;   /* that were taken in */
    uint64_t switches; /* from one strategy to another */
    contender_t contenders[LEARN_STRATEGIES]; /* the first is the default */
    unsigned incumbent;
    unsigned challenger;
    unsigned step;   /* the last challenger differs so from its incumbent: where breeding begins */
    unsigned rest;   /* epochs until the next match */
    unsigned drifts; /* so far, LEARN_REST_DOUBLINGS at most */
    unsigned over;   /* epochs in a row in which the incumbent cost more than promised */
    unsigned alone;  /* epochs of the canary */
    uint64_t alone_cost;
    uint64_t promised; /* cost of the incumbent when it won; 0: it won nothing */
    trial_match_t match;
    uint64_t record_count; /* the last LEARN_RECORDS of them are kept, by number modulo that */
    trial_record_t records[LEARN_RECORDS];
} trial_t;

extern HIDDEN const char *const trial_state_names[TRIAL_STATE_COUNT];
extern HIDDEN const char *const trial_event_names[EVENT_COUNT];
extern HIDDEN const char *const trial_reason_names[REASON_COUNT];

/* Begins to learn. `first` is the incumbent: the default, or what an earlier run found best. */
void trial_begin(trial_t *trial, uint64_t price, const strategy_t *first);

/* Who runs in the epoch that comes: its place among the contenders. */
unsigned trial_running(const trial_t *trial);

static inline const strategy_t *trial_strategy(const trial_t *trial)
{
    return &trial->contenders[trial_running(trial)].strategy;
}

/* Cost of an epoch in nanoseconds per second. */
uint64_t trial_cost(const trial_epoch_t *epoch, uint64_t price);

/* Has the epoch as it is so far broken a guard? Then it is over. What it costs counts only where it
 * is whole. */
trial_reason_t trial_broken_guard(const trial_t *trial, const trial_epoch_t *epoch, bool is_whole);

/* An epoch is over: decides what follows. */
void trial_take(trial_t *trial, const trial_epoch_t *epoch);

/* The law: every value lies within its clamps, the first strategy is the default, and no two
 * contenders are the same. */
bool trial_is_valid(const trial_t *trial);

#endif
