/*
 * rest WORKLOAD [CALLS]
 *
 * What programs hold at rest. Each workload is the pattern of a report of users about some
 * program and allocator: it works, frees what such a program frees, and then rests for three
 * seconds. With "calls" it allocates and frees 64 bytes in each tenth of a second of the rest;
 * without, it makes no call. lab/suites/rest.toml runs them, and their last resident memory is
 * what counts.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAGE = 4096, MIB = 1 << 20 };

static uint64_t draw(uint64_t *state, uint64_t least, uint64_t most)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return least + (*state * 0x2545F4914F6CDD1D >> 11) % (most - least + 1);
}

static void *written(void *block, size_t size)
{
    if (block == NULL)
        abort();
    for (size_t at = 0; at < size; at += PAGE)
        ((volatile char *)block)[at] = 1;
    return block;
}

static void *allocate(size_t size)
{
    return written(malloc(size), size);
}

static void *allocate_aligned(size_t size)
{
    void *block = NULL;
    return posix_memalign(&block, 64, size) == 0 ? written(block, size) : NULL;
}

static void run_threads(int count, void *(*work)(void *), uint64_t seed)
{
    pthread_t threads[16];
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(seed + (uint64_t)i)) != 0)
            abort();
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* Inference on pictures whose height differs (pytorch/pytorch#27971): each of 16 layers takes
 * tensors and a workspace of another size each time. */
static void tensors(void)
{
    enum { WEIGHTS = 120, PICTURES = 800, LAYERS = 16, WIDTH = 320 };
    static void *weights[WEIGHTS];
    uint64_t state = 9;
    for (int i = 0; i < WEIGHTS; i++)
        weights[i] = allocate_aligned((size_t)(64 << i / 30) * (size_t)(64 << i / 30) * 9 / 2);
    for (int picture = 0; picture < PICTURES; picture++) {
        double part = (double)draw(&state, 0, 1 << 20) / (1 << 20);
        size_t height = 100 + (size_t)(40 / (1.02 - part * part));
        void *input = allocate_aligned(3 * height * WIDTH * 4);
        void *result = allocate_aligned(64 * (height / 2) * (WIDTH / 2) * 4);
        free(input);
        for (size_t layer = 0; layer < LAYERS; layer++) {
            size_t step = layer < 3 ? 4 : layer < 7 ? 8 : layer < 13 ? 16 : 32;
            size_t points = (height / step + 1) * (WIDTH / step + 1), size = 64 * step * points;
            void *workspace = allocate_aligned(points * 288 * (1 + layer % 3));
            void *first = allocate_aligned(size);
            free(workspace);
            void *second = allocate_aligned(size), *third = allocate_aligned(size);
            free(second);
            free(first);
            free(result);
            result = third;
        }
        free(result);
    }
    for (int i = 0; i < WEIGHTS; i++)
        if (i % 10 != 0)
            free(weights[i]);
}

/* A pool of threads makes map tiles in bursts (samsoir/xearthlayer#227): small downloads, decoded
 * squares, a picture, its smaller copies, and a result that a bounded cache keeps. */
enum { TILES_KEPT = 24 };
static void *tiles_kept[TILES_KEPT];
static pthread_mutex_t tiles_mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int tiles_left;

static void *encoded(char *picture, size_t size)
{
    char *result = NULL;
    size_t length = 0;
    for (int level = 0; level < 5; level++, size /= 4) {
        result = realloc(result, length + size / 4);
        written(result + length, size / 4);
        length += size / 4;
        char *smaller = allocate(size / 4);
        free(picture);
        picture = smaller;
    }
    free(picture);
    return result;
}

static void *make_tiles(void *seed)
{
    enum { SQUARES = 64, SQUARE = 256 * 256 * 4 };
    uint64_t state = 100 + (uint64_t)(uintptr_t)seed;
    while (atomic_fetch_sub(&tiles_left, 1) > 0) {
        void *loads[SQUARES];
        for (int i = 0; i < SQUARES; i++)
            loads[i] = allocate(draw(&state, 9000, 31000));
        char *picture = calloc(SQUARES, SQUARE);
        for (int i = 0; i < SQUARES; i++) {
            void *decoded = allocate(SQUARE), *scratch = allocate(draw(&state, 20000, 90000));
            written(picture + (size_t)i * SQUARE, SQUARE);
            free(scratch);
            free(decoded);
            free(loads[i]);
        }
        void *result = encoded(picture, (size_t)SQUARES * SQUARE);
        uint64_t place = draw(&state, 0, TILES_KEPT - 1);
        pthread_mutex_lock(&tiles_mutex);
        void *old = tiles_kept[place];
        tiles_kept[place] = result;
        pthread_mutex_unlock(&tiles_mutex);
        free(old);
    }
    return NULL;
}

static void tiles(void)
{
    for (int burst = 0; burst < 14; burst++) {
        bool is_large = burst % 5 == 4;
        atomic_store(&tiles_left, is_large ? 24 : 5);
        run_threads(is_large ? 12 : 1 + burst % 2, make_tiles, (uint64_t)burst * 100);
    }
    for (int i = 0; i < TILES_KEPT; i++)
        if (i % 4 != 0)
            free(tiles_kept[i]);
}

/* Eight threads allocate 230 MB of small blocks, and the main thread frees them, three times
 * (zed-industries/zed#64336). */
enum { WORKERS = 8, WORKER_BLOCKS = 200000 };
static void **worker_blocks[WORKERS];

static void *allocate_many(void *seed)
{
    uint64_t worker = (uint64_t)(uintptr_t)seed, state = worker * 7919 + 1;
    for (int i = 0; i < WORKER_BLOCKS; i++) {
        size_t size = 32 + draw(&state, 0, 7) * draw(&state, 0, 63);
        worker_blocks[worker][i] = memset(allocate(size), 1, size);
    }
    return NULL;
}

static void workers(void)
{
    for (int i = 0; i < WORKERS; i++)
        worker_blocks[i] = calloc(WORKER_BLOCKS, sizeof(void *));
    for (int round = 0; round < 3; round++) {
        run_threads(WORKERS, allocate_many, 0);
        for (int i = 0; i < WORKER_BLOCKS; i++)
            for (int worker = 0; worker < WORKERS; worker++)
                free(worker_blocks[worker][i]);
    }
}

/* Four threads make batches of columns and hand them on (apache/gluten#7397); above a limit they
 * drop half of what they hold. */
enum { BOXES = 4, BATCHES = 96, COLUMNS = 32 };
typedef struct {
    void *columns[COLUMNS];
    size_t sizes[COLUMNS];
} batch_t;
static batch_t *boxes[BOXES][BATCHES];
static pthread_mutex_t box_mutexes[BOXES];
static atomic_long batch_bytes;

static void drop(batch_t *batch)
{
    for (int i = 0; batch != NULL && i < COLUMNS; i++) {
        atomic_fetch_sub(&batch_bytes, (long)batch->sizes[i]);
        free(batch->columns[i]);
    }
    free(batch);
}

static batch_t *exchange(uint64_t box, uint64_t place, batch_t *batch)
{
    pthread_mutex_lock(&box_mutexes[box]);
    batch_t *old = boxes[box][place];
    boxes[box][place] = batch;
    pthread_mutex_unlock(&box_mutexes[box]);
    return old;
}

static void *make_batches(void *seed)
{
    uint64_t own = (uint64_t)(uintptr_t)seed, state = 31 + own;
    for (int round = 0; round < 450; round++) {
        batch_t *batch = calloc(1, sizeof *batch);
        size_t rows = draw(&state, 1, 4) * 1024;
        for (int i = 0; i < COLUMNS; i++) {
            size_t strings = i % 8 == 7 ? draw(&state, 4, 120) : 1 + (size_t)(i % 8 * 2);
            batch->sizes[i] = rows * strings;
            batch->columns[i] = allocate_aligned(rows * strings);
            atomic_fetch_add(&batch_bytes, (long)(rows * strings));
        }
        drop(exchange(draw(&state, 0, BOXES - 1), draw(&state, 0, BATCHES - 1), batch));
        for (uint64_t i = 0; atomic_load(&batch_bytes) > 150L * MIB && i < BATCHES; i += 2)
            drop(exchange(own, i, NULL));
    }
    return NULL;
}

static void batches(void)
{
    for (int i = 0; i < BOXES; i++)
        pthread_mutex_init(&box_mutexes[i], NULL);
    for (int query = 0; query < 3; query++) {
        run_threads(BOXES, make_batches, 0);
        for (uint64_t i = 0; i < BOXES * BATCHES; i++)
            drop(exchange(i / BATCHES, i % BATCHES, NULL));
    }
}

/* Use rises to 400 MiB and falls to 100, ten times, in blocks of 10 kB. */
static void saw_tooth(void)
{
    enum { BLOCK = 10000, LOW = 100 * MIB / BLOCK, HIGH = 400 * MIB / BLOCK };
    void **blocks = calloc(HIGH, sizeof *blocks);
    size_t count = 0;
    for (int tooth = 0; tooth < 10; tooth++) {
        while (count < HIGH)
            blocks[count++] = allocate(BLOCK);
        while (count > LOW)
            free(blocks[--count]);
    }
    while (count > 0)
        free(blocks[--count]);
    free(blocks);
}

/* Ten blocks of 64 MB are written, and then freed. */
static void large(void)
{
    void *blocks[10];
    for (int i = 0; i < 10; i++)
        blocks[i] = allocate((size_t)64000000);
    for (int i = 0; i < 10; i++)
        free(blocks[i]);
}

static const struct {
    const char *name;
    void (*run)(void);
} workloads[] = {{"tensors", tensors}, {"tiles", tiles},         {"workers", workers},
                 {"batches", batches}, {"saw-tooth", saw_tooth}, {"large", large}};

int main(int argument_count, char **arguments)
{
    bool has_calls = argument_count > 2 && strcmp(arguments[2], "calls") == 0;
    for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++)
        if (argument_count > 1 && strcmp(arguments[1], workloads[i].name) == 0) {
            workloads[i].run();
            for (int tenth = 0; tenth < 30; tenth++) {
                nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
                void *volatile block = has_calls ? malloc(64) : NULL;
                free(block);
            }
            return 0;
        }
    fprintf(stderr, "usage: rest tensors|tiles|workers|batches|saw-tooth|large [calls]\n");
    return 2;
}
