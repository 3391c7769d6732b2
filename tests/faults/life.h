/* Lives of the victim, each in a fork of a process that never allocates, and what they leave.

   A life begins, suffers (under faults, or under limits that `begin` sets and `end` lifts), must
   recover, and says at its end what it holds. That is compared with lives that suffered nothing. */
#ifndef HAKMEM_TESTS_LIFE_H
#define HAKMEM_TESTS_LIFE_H

#include "faults/injector.h"
#include "faults/victim.h"

#include <sys/wait.h>

typedef struct life {
    fault_t fault;
    bool has_allocated; /* It has allocated before the suffering begins. */
    size_t step;      /* For `begin`. */
    void (*begin)(size_t step);
    void (*end)(void);
} life_t;

/* What a life says at its end, in memory shared with us. */
typedef struct outcome {
    size_t refusals;
    size_t used;         /* Bytes that the allocator believes are in use; all was freed. */
    size_t lost;         /* Bytes that the kernel gave and the allocator does not know of. */
    size_t kept;         /* Bytes that stay when all is asked back. */
    uint64_t call_count; /* Of all kinds, under faults. */
} outcome_t;

static outcome_t *outcome;
static outcome_t usual; /* The most that lives without faults say. */
static uint64_t usual_calls[FAULT_KINDS];
static size_t life_count;

static void life_live(const life_t *life)
{
    hakmem_statistics_t now;
    (void)alarm(LIFE_SECONDS);
    if (life->has_allocated) free(hidden(malloc(1)));
    if (life->begin != NULL) life->begin(life->step);
    injector_arm(true);
    victim_suffer();
    injector_arm(false);
    if (life->end != NULL) life->end();
    victim_recovers();
    (void)hakmem_purge();
    check(hakmem_get_statistics(&now));
    outcome->refusals = refusals;
    outcome->used = now.used;
    outcome->lost = injection->mapped_bytes - now.mapped - now.metadata_mapped;
    outcome->kept = now.free_pages + now.huge_cached + now.cached;
    outcome->call_count = injection->calls[FAULT_ANY];
    _exit(0);
}

/* One life; how it ended. */
static int life_run(const life_t *life)
{
    int status = 0;
    *injection = (injection_t){.fault = life->fault};
    *outcome = (outcome_t){.refusals = SIZE_MAX};
    const pid_t child = fork();
    check(child >= 0);
    if (child == 0) life_live(life);
    check_eq(waitpid(child, &status, 0), child);
    life_count++;
    return status;
}

static size_t life_larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* What lives without faults are like. Threads interleave differently each time: take a few. */
static void life_learn_what_is_usual(bool may_be_refused)
{
    enum { LIVES = 8 };
    const life_t carefree = {.fault = {.kind = FAULT_ANY}, .has_allocated = true};
    for (size_t i = 0; i < LIVES; i++) {
        check_eq(life_run(&carefree), 0);
        check(may_be_refused || outcome->refusals == 0);
        usual.used = life_larger(usual.used, outcome->used);
        usual.lost = life_larger(usual.lost, outcome->lost);
        usual.kept = life_larger(usual.kept, outcome->kept);
        usual.call_count = life_larger(usual.call_count, outcome->call_count);
        for (size_t kind = 0; kind < FAULT_KINDS; kind++) {
            usual_calls[kind] = life_larger(usual_calls[kind], injection->calls[kind]);
        }
    }
    for (size_t kind = 0; kind < FAULT_KINDS; kind++) {
        (void)printf("%s %ju, ", fault_names[kind], (uintmax_t)usual_calls[kind]);
        check(usual_calls[kind] > 0); /* Else the allocator has another way into the kernel. */
    }
    (void)printf("used %zu, lost %zu, kept %zu\n", usual.used, usual.lost, usual.kept);
}

/* To be called first, before anything allocates. `may_be_refused`: this process has a limit. */
static void life_prepare(bool may_be_refused)
{
    check_eq(setvbuf(stdout, NULL, _IONBF, 0), 0); /* A buffer would be the first allocation. */
    injector_install();
    outcome = (outcome_t *)mmap(NULL, sizeof *outcome, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(outcome != MAP_FAILED);
    life_learn_what_is_usual(may_be_refused);
}

#endif
