/* Allocates in known amounts from known functions, for the tests of the heap profile. The first
   argument says what: the functions below. */
#include "check.h"
#include "weak.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

static const char *path;

#define NOINLINE __attribute__((noinline))

/* Kept where the compiler cannot see that nobody uses it. */
static void *volatile kept[2000000];
static size_t kept_count;

NOINLINE void *leak_small(void)
{
    return kept[kept_count++] = malloc(48);
}

NOINLINE void *leak_large(void)
{
    return kept[kept_count++] = malloc(100000);
}

NOINLINE void *leak_zeroed(void)
{
    return kept[kept_count++] = calloc(3, 1000);
}

NOINLINE void *leak_aligned(void)
{
    return kept[kept_count++] = aligned_alloc(64, 640);
}

NOINLINE void *leak_huge(void)
{
    return kept[kept_count++] = malloc((size_t)64 << 20);
}

NOINLINE void churn(void)
{
    void *volatile block = malloc(200);
    free(block);
}

NOINLINE void *grow(void)
{
    void *block = NULL;
    for (size_t size = 100; size <= 4000000; size *= 2) block = realloc(block, size);
    return block;
}

/* Sixteen places that ask for one size: of eight the blocks stay, of eight they go at once. A block
   that stays is asked for while the one before was just freed, so that it gets its place. */
#define PLACE(number)                                                                              \
    NOINLINE void *place_##number(bool stays)                                                      \
    {                                                                                              \
        void *volatile block = malloc(64);                                                         \
        if (!stays)                                                                                \
            free(block);                                                                           \
        return block;                                                                              \
    }
PLACE(0) PLACE(1) PLACE(2) PLACE(3) PLACE(4) PLACE(5) PLACE(6) PLACE(7)
PLACE(8) PLACE(9) PLACE(10) PLACE(11) PLACE(12) PLACE(13) PLACE(14) PLACE(15)

/* Odd places keep 50,000 blocks each, 24 MB of 128 MB in all. */
test(places)
{
    static void *(*const all[16])(bool) = {
        place_0, place_1, place_2,  place_3,  place_4,  place_5,  place_6,  place_7,
        place_8, place_9, place_10, place_11, place_12, place_13, place_14, place_15};
    for (unsigned round = 0; round < 50000; round++)
        for (unsigned place = 0; place < 16; place++)
            for (unsigned times = 0; times < (place % 2 != 0 ? 1u : 4u); times++) {
                void *block = all[place](place % 2 != 0);
                if (place % 2 != 0)
                    kept[kept_count++] = block;
            }
}

NOINLINE void *begin_to_stay(void)
{
    return malloc(40);
}

NOINLINE void *begin_to_go(void)
{
    return malloc(40);
}

/* By `steps` that move it, up and once down. */
NOINLINE void *grow_on(void *block)
{
    static const size_t steps[] = {100, 300, 5000, 100, 40000, 200000};
    memset(block, 7, 40);
    for (unsigned step = 0; step < sizeof steps / sizeof *steps; step++) {
        block = realloc(block, steps[step]);
        check(((char *)block)[39] == 7);
    }
    return block = realloc(block, 60);
}

/* 20,000 blocks of 40 bytes each that grow and shrink; those of one place stay. */
test(grown)
{
    for (unsigned turn = 0; turn < 20000; turn++) {
        kept[kept_count++] = grow_on(begin_to_stay());
        free(grow_on(begin_to_go()));
    }
}

/* 24 MB of small blocks, 40 MB of large ones, 12 and 6.4 MB of others; 20 MB come and go. */
test(known)
{
    for (unsigned turn = 0; turn < 500000; turn++) leak_small();
    for (unsigned turn = 0; turn < 400; turn++) leak_large();
    for (unsigned turn = 0; turn < 4000; turn++) leak_zeroed();
    for (unsigned turn = 0; turn < 10000; turn++) leak_aligned();
    for (unsigned turn = 0; turn < 100000; turn++) churn();
}

test(huge)
{
    leak_huge();
    for (unsigned turn = 0; turn < 9; turn++) free(leak_huge());
}

/* What a program leaves that does not come to its end. */
test(then_wait)
{
    for (unsigned turn = 0; turn < 500000; turn++) leak_small();
    usleep(400000);
    for (unsigned turn = 0; turn < 10; turn++) leak_large();
    usleep(400000);
    leak_huge();
    for (unsigned turn = 0; turn < 150; turn++) { /* calls go on, in which the profile is written */
        for (unsigned call = 0; call < 2000; call++) churn();
        usleep(20000);
    }
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}

/* Blocks that are sampled each, of all sizes: what they are used for must still work. */
test(every)
{
    for (size_t size = 0; size < 100000; size = size * 3 / 2 + 1) {
        char *block = malloc(size);
        check(block != NULL && (uintptr_t)block % 16 == 0);
        size_t usable = malloc_usable_size(block);
        check(usable >= size && usable <= size + size / 2 + 16384);
        if (size <= 32768) check(usable <= size + size / 8 + 16);
        memset(block, 7, usable);
        block = realloc(block, size + 1);
        for (size_t at = 0; at < size; at++) check(block[at] == 7);
        block = realloc(block, size / 4 + 1);
        check(block[size / 4] == 7 || size / 4 >= size);
        free(block);
        char *zeroed = calloc(1, size);
        for (size_t at = 0; at < size; at++) check(zeroed[at] == 0);
        free(zeroed);
        for (size_t alignment = 16; alignment <= 65536; alignment *= 4) {
            void *aligned = aligned_alloc(alignment, size);
            check((uintptr_t)aligned % alignment == 0);
            free(aligned);
        }
    }
    for (unsigned turn = 0; turn < 20; turn++) free(grow());
    hakmem_heap_t *heap = hakmem_heap_new != NULL ? hakmem_heap_new() : NULL;
    for (unsigned turn = 0; heap != NULL && turn < 1000; turn++)
        check(hakmem_heap_malloc(heap, 99) != NULL);
    if (heap != NULL) hakmem_heap_destroy(heap);
}

NOINLINE static void *allocate_here(void *count)
{
    for (size_t turn = 0; turn < (size_t)count; turn++) leak_small();
    return NULL;
}

NOINLINE static void *free_here(void *nothing)
{
    for (size_t index = 0; index < kept_count; index++) free(kept[index]);
    return nothing;
}

/* One thread allocates 24 MB, another frees it. */
test(hand_over)
{
    pthread_t thread;
    check_eq(pthread_create(&thread, NULL, allocate_here, (void *)500000), 0);
    check_eq(pthread_join(thread, NULL), 0);
    check_eq(pthread_create(&thread, NULL, free_here, NULL), 0);
    check_eq(pthread_join(thread, NULL), 0);
}

test(fork_once)
{
    leak_huge();
    pid_t child = fork();
    if (child == 0) {
        leak_huge();
        exit(0);
    }
    check_eq(waitpid(child, NULL, 0), child);
}

/* The child frees what its parent has allocated. */
test(fork_and_free)
{
    leak_huge();
    for (unsigned turn = 0; turn < 100000; turn++) leak_small();
    pid_t child = fork();
    if (child == 0) {
        while (kept_count != 0) free(kept[--kept_count]);
        exit(0);
    }
    check_eq(waitpid(child, NULL, 0), child);
}

/* By the functions of hakmem.h: only the middle third is sampled. */
test(api)
{
    check_eq(hakmem_profile_write(path), EINVAL);
    for (unsigned turn = 0; turn < 100000; turn++) leak_small();
    check_eq(hakmem_profile_start(4096), 0);
    for (unsigned turn = 0; turn < 100000; turn++) leak_small();
    hakmem_profile_stop();
    for (unsigned turn = 0; turn < 100000; turn++) leak_small();
    check_eq(hakmem_profile_write(NULL), EINVAL);
    check_eq(hakmem_profile_write("/nonesuch/profile"), ENOENT);
    check_eq(hakmem_profile_write("/dev/full"), EIO);
    check_eq(hakmem_profile_write(path), 0);
}

static volatile bool is_over;

NOINLINE static void *come_and_go(void *seed)
{
    static _Thread_local char *own[4096];
    uint64_t state = (uintptr_t)seed;
    while (!is_over) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        char **slot = &own[state >> 52];
        if (*slot != NULL) {
            check(**slot == (char)(uintptr_t)seed);
            free(*slot);
            *slot = NULL;
        } else {
            *slot = (state >> 20) % 2 ? malloc(100) : calloc(1, 100);
            **slot = (char)(uintptr_t)seed;
        }
    }
    for (unsigned index = 0; index < 4096; index++) free(own[index]);
    return NULL;
}

/* Sampling goes on and off under the feet of threads at work. */
test(toggle)
{
    pthread_t threads[3];
    for (uintptr_t index = 0; index < 3; index++)
        check_eq(pthread_create(&threads[index], NULL, come_and_go, (void *)(index + 1)), 0);
    for (unsigned turn = 0; turn < 20000; turn++) {
        check_eq(hakmem_profile_start((size_t)1 << 30), 0);
        if (turn % 8 == 0) usleep(50);
        hakmem_profile_stop();
        if (turn % 8 == 1) usleep(50);
    }
    is_over = true;
    for (unsigned index = 0; index < 3; index++) check_eq(pthread_join(threads[index], NULL), 0);
}

/* Memory has run out, but for every second block of 1,000 bytes: each of these serves again. */
test(full)
{
    struct rlimit limit = {(size_t)300 << 20, (size_t)300 << 20};
    size_t count = 1, freed = 0, served = 0;
    check_eq(hakmem_profile_start(16384), 0);
    leak_huge(); /* surely a sample */
    check_eq(hakmem_profile_start((size_t)1 << 30), 0);
    check_eq(setrlimit(RLIMIT_AS, &limit), 0);
    while (count < 2000000 && (kept[count] = malloc(1000)) != NULL) count++;
    for (size_t index = 1; index < count; index += 2) {
        free(kept[index]);
        freed++;
    }
    check_eq(hakmem_profile_start(16384), 0);
    while (served < freed / 2 && malloc(1000) != NULL) served++;
    check_eq(served, freed / 2);
    check_eq(hakmem_profile_write(path), 0);
}

int main(int argc, char **argv)
{
    check(argc > 1);
    path = argv[2];
    return check_run(2, argv);
}
