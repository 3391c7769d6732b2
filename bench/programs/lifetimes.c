/*
 * lifetimes sessions|wrapped|phases|wrapped_phases [end]
 *
 * Programs that mix long lives among short ones of the same sizes, for lab/suites/learning.toml.
 * Each prints "done" when it has reached its end and then sleeps with what it holds: what stays at
 * the end is what a server holds. With "end" it ends.
 *
 * sessions: requests come in waves. A request holds some buffers until it has been answered; each
 * tenth opens a session of a few blocks, of which one in four ends later, and is kept. Another
 * function makes those.
 * wrapped: the same, but both ask for memory by one function, as zmalloc and xmalloc are.
 * phases: each phase has a size of its own. Of its blocks a thirty-third stays, made by another
 * function.
 * wrapped_phases: the same, by one function.
 */
#include "bench.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { WAVES = 8, REQUESTS = 6000, BUFFERS = 12, SESSION_BLOCKS = 6 };
enum { PHASES = 8, PHASE_BYTES = 32 << 20 };

#define NOT_INLINED __attribute__((noinline, noclone))

typedef struct block {
    struct block *next;
} block_t;

static bench_random_t stream;
static bool is_wrapped;

static uint64_t draw(uint64_t range)
{
    return bench_scale(bench_random_next(&stream), range);
}

static block_t *written(void *block, size_t size)
{
    bench_touch(block, size, TOUCH_WHOLE);
    return block;
}

NOT_INLINED static void *wrapper(size_t size)
{
    void *block = malloc(size);
    bench_use(block);
    return block;
}

/* What comes and goes. */
NOT_INLINED static block_t *work_block(size_t size)
{
    void *block = is_wrapped ? wrapper(size) : malloc(size);
    bench_use(block);
    return written(block, size);
}

/* What stays. */
NOT_INLINED static block_t *long_block(size_t size)
{
    void *block = is_wrapped ? wrapper(size) : malloc(size);
    bench_use(block);
    return written(block, size);
}

static void drop(block_t *list)
{
    while (list != NULL) {
        block_t *rest = list->next;
        free(list);
        list = rest;
    }
}

static block_t *chain(block_t *(*make)(size_t), size_t count)
{
    block_t *list = NULL;
    for (; count != 0; count--) {
        block_t *block = make((size_t)(32 + draw(480)));
        block->next = list;
        list = block;
    }
    return list;
}

static void rest(void)
{
    nanosleep(&(struct timespec){0, 100000000}, NULL);
}

/* The requests of a wave are in flight together, and are answered in an order drawn at random. */
static void run_sessions(void)
{
    static block_t *requests[REQUESTS], *sessions[WAVES * REQUESTS / 10];
    size_t session_count = 0;
    for (unsigned wave = 0; wave < WAVES; wave++) {
        for (size_t at = 0; at < REQUESTS; at++) {
            requests[at] = chain(work_block, BUFFERS);
            if (at % 10 == 0)
                sessions[session_count++] = chain(long_block, SESSION_BLOCKS);
        }
        rest();
        for (size_t left = REQUESTS; left != 0; left--) {
            size_t at = (size_t)draw(left);
            drop(requests[at]);
            requests[at] = requests[left - 1];
        }
        for (size_t count = REQUESTS / 40; count != 0; count--) {
            size_t at = (size_t)draw(session_count);
            drop(sessions[at]);
            sessions[at] = NULL;
        }
        rest();
    }
}

static void run_phases(void)
{
    static const size_t least[] = {32, 200, 1024, 8192}, most[] = {96, 400, 4096, 30000};
    static block_t *kept;
    for (unsigned phase = 0; phase < PHASES; phase++) {
        size_t from = least[phase % 4], to = most[phase % 4];
        block_t *list = NULL;
        for (size_t got = 0; got < PHASE_BYTES;) {
            size_t size = from + (size_t)draw(to - from);
            block_t *block = work_block(size);
            block->next = list;
            list = block;
            got += size;
            if (draw(33) == 0) {
                block_t *result = long_block(size);
                result->next = kept;
                kept = result;
            }
        }
        rest();
        drop(list);
        rest();
    }
}

int main(int argument_count, char **arguments)
{
    const char *name = argument_count >= 2 ? arguments[1] : "";
    bool ends = argument_count == 3 && strcmp(arguments[2], "end") == 0;
    stream = bench_random_seed(1, 1);
    is_wrapped = strncmp(name, "wrapped", strlen("wrapped")) == 0;
    if (strcmp(name, "phases") == 0 || strcmp(name, "wrapped_phases") == 0)
        run_phases();
    else if (strcmp(name, "wrapped") == 0 || strcmp(name, "sessions") == 0)
        run_sessions();
    else
        bench_refuse("lifetimes", "give sessions, phases, wrapped or wrapped_phases");
    puts("done");
    fflush(stdout);
    if (!ends)
        pause();
    return 0;
}
