/* Tests of the allocator's layers: each runs in a process of its own, on a fresh allocator and a
 * fresh fake kernel.
 *
 *   lawful_test(a_span_is_joined_with_its_neighbours) { … }
 *
 * Included by one program each, so the bodies are here. */
#ifndef HAKMEM_TESTS_FRESH_H
#define HAKMEM_TESTS_FRESH_H

#include <pthread.h>
#include <sys/wait.h>

#include "cache/depot.h"
#include "cache/thread_cache.h"
#include "upkeep/upkeep.h"
#include "check.h"
#include "fake_os.h"
#include "os/meta.h"
#include "os/os.h"
#include "options/options.h"
#include "slab/central_list.h"
#include "slab/private_heap.h"
#include "slab/size_class.h"
#include "large/huge.h"
#include "heap/page_heap.h"
#include "keep/pressure.h"
#include "upkeep/purge.h"
#include "heap/span_cache.h"

/* As upkeep does. */
static inline void look_at_limits(uint64_t now_ms)
{
    huge_statistics_t huge = huge_statistics();
    size_t held = page_heap.used_units + page_heap.free.dirty_units;
    pressure_look((page_heap.mapped_units << UNIT_SHIFT) + huge.mapped_bytes,
                  (held << UNIT_SHIFT) + huge.live_bytes + huge.cached_bytes, now_ms);
}

/* Runs `work` in so many threads (20 at most), each with its number from 1 on, to their end. */
static inline void run_threads(unsigned count, void *(*work)(void *argument))
{
    pthread_t threads[20];
    check(count <= 20);
    for (uintptr_t index = 0; index < count; index++)
        check_eq(pthread_create(&threads[index], NULL, work, (void *)(index + 1)), 0);
    for (unsigned index = 0; index < count; index++)
        check_eq(pthread_join(threads[index], NULL), 0);
}

/* Runs `body` in a child and returns the child's status; its message goes to `words`, if given. */
static inline int fresh_status(void (*body)(void), char *words, size_t room)
{
    int ends[2];
    check_eq(pipe(ends), 0);
    (void)fflush(stdout);
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        if (words != NULL)
            check(dup2(ends[1], STDERR_FILENO) >= 0);
        body();
        exit(0); /* not _exit: a sanitizer has the last word */
    }
    close(ends[1]);
    size_t length = 0;
    ssize_t got = 1;
    while (words != NULL && got > 0) {
        got = read(ends[0], words + length, room - 1 - length);
        length += got > 0 ? (size_t)got : 0;
    }
    if (words != NULL)
        words[length] = '\0';
    close(ends[0]);
    int status = 0;
    check_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline void fresh_run(void (*body)(void))
{
    int status = fresh_status(body, NULL, 0);
    if (status != 0 && status != CHECK_SKIPPED)
        check_end(status);
}

#define fresh_test(name)                                                                           \
    static void name##_body(void);                                                                 \
    test(name)                                                                                     \
    {                                                                                              \
        fresh_run(name##_body);                                                                    \
    }                                                                                              \
    static void name##_body(void)

/* A fresh test with a beginning and an end that it shares with others. */
#define fresh_test_within(begin, end, name)                                                        \
    static void name##_middle(void);                                                               \
    fresh_test(name)                                                                               \
    {                                                                                              \
        begin();                                                                                   \
        name##_middle();                                                                           \
        end();                                                                                     \
    }                                                                                              \
    static void name##_middle(void)

/* A fresh test of an allocator that is initialised, and whose laws hold in the end. */
#define lawful_test(name) fresh_test_within(initialise, check_laws, name)

/* The order of initialisation of src/entry/init.c. */
static inline void initialise(void)
{
    options_load(os_environment(), NULL, NULL);
    options.free_policy = FREE_BATCH; /* free memory waits a delay, whatever was learnt */
    check(page_map_create());
    page_heap_create();
    huge_create();
    central_lists_create();
    private_heaps_create();
    depots_create();
    span_cache_create();
    thread_caches_create(upkeep_at_thread_exit);
    size_classes_create();
    size_classes_open(!options.check_frees);
}

/* From here on the kernel refuses mappings, and no descriptor is left. */
static inline void refuse_descriptors(void)
{
    fake_os_fail_always(FAKE_MAP);
    while (meta_alloc(SPAN_DESCRIPTOR_SIZE) != NULL)
        continue;
}

/* From here on the kernel refuses mappings, and no magazine is left. */
static inline void refuse_magazines(void)
{
    fake_os_fail_always(FAKE_MAP);
    while (magazine_create() != NULL)
        continue;
}

static inline void check_heaps_are_valid(void)
{
    check(page_heap_is_valid());
    check(span_cache_is_valid());
}

static inline void check_laws(void)
{
    check_heaps_are_valid();
    check(central_lists_are_valid());
    check(depots_are_valid());
}

/* Says that all of the piece was purged, or nothing, and puts it back. Returns dirty units. */
static inline size_t put_back(purge_piece_t *piece, bool is_purged, uint64_t now_ms)
{
    for (unsigned index = 0; index < piece->run_count && !is_purged; index++)
        piece->runs[index].dirty_count = 0;
    return page_heap_purged(piece, now_ms);
}

/* Looks for idle pages, and gives all of them back. Returns bytes. */
static inline size_t purge_idle(uint64_t now_ms)
{
    purge_look(now_ms);
    return purge_due(SIZE_MAX >> UNIT_SHIFT, now_ms) << UNIT_SHIFT;
}

/* Blocks of the class in all thread caches. */
static inline size_t thread_caches_block_count(unsigned class)
{
    uint32_t counts[CLASS_COUNT];
    thread_caches_count_blocks(counts);
    return counts[class];
}

/* splitmix64 (Steele et al. 2014): the same numbers on every machine. */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t mixed = *state += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

#endif
