/*
 * replay FILE [--touch --rounds]
 *
 * Does what an allocation trace has recorded (docs/trace.md), as fast as the allocator can: the
 * same blocks, in the same order, with as many threads as the program had at a time. What the
 * program did between its calls is left out, but for writing to what it had allocated. FILE comes
 * from replay_prepare. It is read piece by piece, so that it takes next to no memory.
 */
#include "bench.h"
#include "replay.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TOUCH, ROUNDS, PARAMETER_COUNT };

static parameter_t parameters[PARAMETER_COUNT] = {
    [TOUCH] = {"touch", KIND_CHOICE, NAMED_ONLY, TOUCH_PAGES, 0, 0, TOUCH_CHOICES, false},
    [ROUNDS] = {"rounds", KIND_COUNT, NAMED_ONLY, 1, 1, 1000000, NULL, false},
};

static bench_t bench = {"replay", "one call of malloc, calloc, realloc or free", parameters,
                        PARAMETER_COUNT, false};

typedef struct place {
    _Atomic uint32_t turn;
    void *block; /* NULL: none */
} place_t;

enum { STEPS_AT_ONCE = 1024, PATIENCE = 100 };

typedef struct worker {
    int file;
    replay_worker_t part;
    replay_step_t steps[STEPS_AT_ONCE];
} worker_t;

static const char *path;
static replay_head_t head;
static place_t *places;

static _Noreturn void refuse(const char *why)
{
    bench_refuse("replay", "%s: %s", path, why);
}

static void read_at(int file, void *to, size_t size, uint64_t offset)
{
    char *rest = to;
    while (size != 0) {
        const ssize_t got = pread(file, rest, size, (off_t)offset);
        if (got <= 0) refuse("it ends too soon");
        rest += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
}

/* The place, once all earlier steps there are done. */
static place_t *wait_for(const replay_step_t *step)
{
    place_t *place = &places[step->place];
    for (unsigned looks = 0;
         atomic_load_explicit(&place->turn, memory_order_acquire) != step->turn; looks++) {
        if (looks < PATIENCE)
            bench_pause();
        else
            (void)sched_yield();
    }
    return place;
}

static void *allocate(const replay_step_t *step)
{
    const size_t size = replay_size(step);
    if (replay_action(step) == REPLAY_ALLOCATE_ZEROED) return calloc(1, size);
    if (replay_action(step) == REPLAY_ALLOCATE) return malloc(size);
    void *block = NULL;
    return posix_memalign(&block, (size_t)1 << replay_shift(step), size) == 0 ? block : NULL;
}

static void touch(void *block, size_t size)
{
    if (size != 0) bench_touch(block, size, (touch_t)parameters[TOUCH].value);
}

static void do_step(const replay_step_t *step)
{
    place_t *place = wait_for(step);
    switch (replay_action(step)) {
    case REPLAY_RESIZE:
        place->block = realloc(place->block, replay_size(step));
        touch(place->block, replay_size(step));
        break;
    case REPLAY_FREE:
        free(place->block);
        place->block = NULL;
        break;
    default:
        place->block = allocate(step);
        touch(place->block, replay_size(step));
        break;
    }
    atomic_store_explicit(&place->turn, step->turn + 1, memory_order_release);
}

static void do_part(void *context)
{
    worker_t *worker = context;
    for (uint64_t done = 0; done < worker->part.count;) {
        const uint64_t left = worker->part.count - done;
        const size_t count = left < STEPS_AT_ONCE ? (size_t)left : STEPS_AT_ONCE;
        read_at(worker->file, worker->steps, count * sizeof(replay_step_t),
                worker->part.offset + done * sizeof(replay_step_t));
        for (size_t index = 0; index < count; index++) do_step(&worker->steps[index]);
        done += count;
    }
}

/* What the program never freed goes before the next round. */
static void begin_again(void)
{
    for (uint64_t index = 0; index < head.place_count; index++) {
        free(places[index].block);
        places[index].block = NULL;
        atomic_store_explicit(&places[index].turn, 0, memory_order_relaxed);
    }
}

/* What a file must hold, whoever has made it: no step reaches outside, and each turn comes. */
typedef struct account {
    uint64_t steps;
    uint64_t turns; /* their sum */
} account_t;

static account_t *accounts; /* of each place */

static void check_steps(worker_t *worker)
{
    for (uint64_t done = 0; done < worker->part.count; done++) {
        replay_step_t *step = &worker->steps[done % STEPS_AT_ONCE];
        if (done % STEPS_AT_ONCE == 0) {
            const uint64_t left = worker->part.count - done;
            read_at(worker->file, worker->steps,
                    (left < STEPS_AT_ONCE ? left : STEPS_AT_ONCE) * sizeof *step,
                    worker->part.offset + done * sizeof *step);
        }
        if (step->place >= head.place_count || replay_action(step) >= REPLAY_ACTION_COUNT ||
            replay_shift(step) >= 48)
            refuse("it is no file of replay_prepare");
        accounts[step->place].steps++;
        accounts[step->place].turns += step->turn;
    }
}

static void check_turns(void)
{
    for (uint64_t index = 0; index < head.place_count; index++)
        if (accounts[index].turns != accounts[index].steps * (accounts[index].steps - 1) / 2)
            refuse("it is no file of replay_prepare");
}

static worker_t *open_workers(void)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) refuse("it cannot be read");
    read_at(file, &head, sizeof head, 0);
    if (head.magic != REPLAY_MAGIC || head.worker_count == 0 ||
        head.worker_count > REPLAY_MOST_WORKERS || head.place_count > REPLAY_MOST_PLACES)
        refuse("it is no file of replay_prepare");
    worker_t *workers = bench_map(head.worker_count, sizeof *workers);
    uint64_t steps = 0;
    for (uint64_t index = 0; index < head.worker_count; index++) {
        workers[index].file = file;
        read_at(file, &workers[index].part, sizeof(replay_worker_t),
                sizeof head + index * sizeof(replay_worker_t));
        steps += workers[index].part.count;
    }
    if (head.place_count > steps) refuse("it is no file of replay_prepare");
    accounts = bench_map(head.place_count + 1, sizeof *accounts);
    for (uint64_t index = 0; index < head.worker_count; index++) check_steps(&workers[index]);
    check_turns();
    (void)munmap(accounts, (head.place_count + 1) * sizeof *accounts);
    places = bench_map(head.place_count + 1, sizeof *places);
    return workers;
}

int main(int argument_count, char **arguments)
{
    uint64_t elapsed_ns = 0;
    uint64_t steps = 0;
    const bool has_path = argument_count > 1 && arguments[1][0] != '-';
    path = has_path ? arguments[1] : "";
    if (has_path) arguments[1] = arguments[0];
    bench_open(&bench, argument_count - has_path, arguments + has_path);
    if (!has_path) bench_refuse("replay", "the first argument is a file of replay_prepare");
    worker_t *workers = open_workers();
    bench_begin(&bench);
    for (uint64_t round = 0; round < parameters[ROUNDS].value; round++) {
        if (round != 0) begin_again();
        elapsed_ns += bench_run_threads(head.worker_count, do_part, workers, sizeof *workers);
        for (uint64_t index = 0; index < head.worker_count; index++)
            steps += workers[index].part.count;
    }
    bench_close(&bench, steps, elapsed_ns);
    return 0;
}
