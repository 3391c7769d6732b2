/* Every system call of the allocator fails once, in one life of the victim or another.

   sweep all STRIDE OFFSET: for each kind of call and each k one, ten or all calls from the k-th on
   fail; then random quarters of the calls. Every STRIDE-th life of this list is lived, from the one
   at OFFSET on. "mmap" or another kind in the place of "all": only these calls.
   sweep one KIND ERROR FIRST COUNT SEED: one of them again, as a failure names it.
   sweep first: calls fail from the first one of the process on. */
#include "faults/life.h"

#define FOR_EVER (UINT64_MAX / 2)
static size_t failure_count;

/* Where failures are not felt: nothing that a program asks for depends on these calls alone. */
static bool must_not_be_felt(const fault_t *fault)
{
    return fault->kind == FAULT_MUNMAP || fault->kind == FAULT_MADVISE ||
           fault->kind == FAULT_MREMAP || (fault->count == 1 && fault->seed == 0);
}

static void say(const fault_t *fault, const char *what, uintmax_t is, uintmax_t most)
{
    failure_count++;
    if (failure_count > 25) return;
    (void)fprintf(stderr, "one %s %d %ju %ju %ju: %s %ju, at most %ju\n", fault_names[fault->kind],
                  fault->error, (uintmax_t)fault->first, (uintmax_t)fault->count,
                  (uintmax_t)fault->seed, what, is, most);
}

static void must_not_exceed(const fault_t *fault, const char *what, uintmax_t is, uintmax_t most)
{
    if (is > most) say(fault, what, is, most);
}

/* A call that fails is not made again and again: a request that is refused in the end may cost 16.
   A request goes to the window three times before it has a mapping of its own. Each time the first
   table that can't grow ends the attempt; where a place turns out to be taken the next is tried,
   with steps that double from a unit: 21 lead through the longest window. */
static uint64_t most_calls(const fault_t *fault)
{
    enum { ATTEMPTS = 3, PLACES = 21, OWN_MAPPING = 2 /* mmap, munmap */ };
    const uint64_t requests = CROWD + 2 * WORKERS * (OPERATIONS + SLOTS);
    if (fault->kind == FAULT_PLACE) return (ATTEMPTS * PLACES + OWN_MAPPING) * requests;
    if (fault->kind == FAULT_MPROTECT)
        return usual.call_count + (ATTEMPTS + OWN_MAPPING) * requests;
    return 13 * usual.call_count + 16 * outcome->refusals;
}

static void judge(const life_t *life, int status)
{
    const fault_t *fault = &life->fault;
    if (WIFSIGNALED(status)) {
        say(fault, "ended by signal", (uintmax_t)WTERMSIG(status), 0);
        return;
    }
    if (WEXITSTATUS(status) != 0) {
        say(fault, "ended with status", (uintmax_t)WEXITSTATUS(status), 0);
        return;
    }
    if (must_not_be_felt(fault)) must_not_exceed(fault, "refused requests", outcome->refusals, 0);
    must_not_exceed(fault, "bytes in use at the end", outcome->used, usual.used);
    must_not_exceed(fault, "bytes kept at the end", outcome->kept, usual.kept);
    must_not_exceed(fault, "bytes mapped and forgotten", outcome->lost, usual.lost);
    if (life->has_allocated)
        must_not_exceed(fault, "system calls", outcome->call_count, most_calls(fault));
}

static void suffer(const fault_t *fault, bool has_allocated)
{
    const life_t life = {.fault = *fault, .has_allocated = has_allocated};
    judge(&life, life_run(&life));
}

static const fault_t rows[] = {
    {.kind = FAULT_MMAP, .error = ENOMEM},     {.kind = FAULT_MMAP, .error = EAGAIN},
    {.kind = FAULT_PLACE, .error = EEXIST},    {.kind = FAULT_OWN, .error = ENOMEM},
    {.kind = FAULT_MUNMAP, .error = ENOMEM},
    {.kind = FAULT_MADVISE, .error = ENOMEM},  {.kind = FAULT_MADVISE, .error = EINVAL},
    {.kind = FAULT_MADVISE, .error = EAGAIN},  {.kind = FAULT_MREMAP, .error = ENOMEM},
    {.kind = FAULT_MPROTECT, .error = ENOMEM}, {.kind = FAULT_ANY, .error = ENOMEM},
};
enum { ROWS = sizeof rows / sizeof rows[0], DURATIONS = 3, SEEDS = 50 };
static const uint64_t durations[DURATIONS] = {1, 10, FOR_EVER};

static size_t length_of(const fault_t *row)
{
    return usual_calls[row->kind] * DURATIONS + SEEDS;
}

/* The faults of a row: the whole list is never written down. The row begins at `from` of the list,
   of which every stride-th is had. */
static void sweep_row(const fault_t *row, size_t from, size_t stride, size_t offset)
{
    const size_t calls = usual_calls[row->kind];
    for (size_t i = 0; i < length_of(row); i++) {
        fault_t fault = *row;
        if ((from + i) % stride != offset % stride) continue;
        if (i < calls * DURATIONS) {
            fault.first = i % calls + 1;
            fault.count = durations[i / calls];
        } else {
            fault.seed = i - calls * DURATIONS + 1;
        }
        suffer(&fault, true);
    }
}

/* Of that kind; FAULT_KINDS: of every kind. */
static void sweep(unsigned kind, size_t stride, size_t offset)
{
    size_t from = 0;
    check(stride > 0);
    for (size_t i = 0; i < ROWS; i++) {
        if (kind != FAULT_KINDS && rows[i].kind != kind) continue;
        sweep_row(&rows[i], from, stride, offset);
        from += length_of(&rows[i]);
    }
    (void)printf("every %zuth of %zu\n", stride, from);
}

/* FAULT_KINDS: no kind is called so. */
static unsigned kind_of(const char *name)
{
    unsigned kind = 0;
    while (kind < FAULT_KINDS && strcmp(name, fault_names[kind]) != 0) kind++;
    return kind;
}

static void sweep_one(char **words)
{
    fault_t fault = {.kind = kind_of(words[0]), .error = (int)strtol(words[1], NULL, 10)};
    check(fault.kind < FAULT_KINDS);
    fault.first = strtoull(words[2], NULL, 10);
    fault.count = strtoull(words[3], NULL, 10);
    fault.seed = strtoull(words[4], NULL, 10);
    suffer(&fault, true);
}

/* Calls fail while the allocator is initialised: one, some or all of them, from each on. */
static void sweep_first(void)
{
    enum { FIRST_CALLS = 12 }; /* It takes eight. */
    for (size_t i = 0; i < ROWS * DURATIONS * FIRST_CALLS; i++) {
        fault_t fault = rows[i / DURATIONS / FIRST_CALLS];
        if (fault.error != ENOMEM && fault.error != EEXIST) continue; /* One error is enough. */
        fault.count = durations[i % DURATIONS];
        fault.first = i / DURATIONS % FIRST_CALLS + 1;
        suffer(&fault, false);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    life_prepare(false);
    if (strcmp(what, "one") == 0 && argc == 7) {
        sweep_one(argv + 2);
    } else if (strcmp(what, "first") == 0) {
        sweep_first();
    } else {
        check(argc == 4 && (kind_of(what) < FAULT_KINDS || strcmp(what, "all") == 0));
        sweep(kind_of(what), strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
    }
    (void)printf("%zu lives, failures %zu\n", life_count, failure_count);
    return failure_count > 0;
}
