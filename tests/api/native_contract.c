/* The native functions of hakmem.h. Weak here, so that the program also starts without HAKMEM. */
#include "check.h"
#include "heap.h"
#include "preload/weak.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static char somewhere_static[64];

test(the_version_is_a_number_with_dots)
{
    const char *version = hakmem_version();
    check(version != NULL && version[0] >= '0' && version[0] <= '9');
    check(strchr(version, '.') != NULL);
}

test(owns_knows_its_blocks_of_every_size)
{
    for (size_t size = 1; size <= (size_t)32 << 20; size *= 3) {
        char *block = hidden(malloc(size));
        check(hakmem_owns(block));
        check(hakmem_owns(block + size / 2));
        free(block);
    }
    void *empty = hidden(malloc(0));
    check(hakmem_owns(empty));
    free(empty);
}

test(owns_refuses_what_is_not_of_the_heap)
{
    char on_stack[64];
    check(!hakmem_owns(NULL));
    check(!hakmem_owns(hidden(on_stack)));
    check(!hakmem_owns(hidden(somewhere_static)));
    check(!hakmem_owns(hidden((void *)(uintptr_t)hakmem_version())));
    check(!hakmem_owns(hidden((void *)(uintptr_t)0x10)));
    check(!hakmem_owns(hidden((void *)(uintptr_t)0xdeadbeefdeadbee0)));
    check(!hakmem_owns(hidden((void *)UINTPTR_MAX)));
}

test(purge_gives_back_idle_memory_and_harms_no_block)
{
    enum { COUNT = 4000, SIZE = 8000 };
    static char *blocks[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        blocks[i] = hidden(malloc(SIZE));
        heap_fill(blocks[i], SIZE, i);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        if (i % 1000 != 0) free(blocks[i]);
    }
    hakmem_statistics_t before, after; /* The frees have given most of it back. */
    check(hakmem_get_statistics(&before));
    const size_t returned = hakmem_purge();
    check(hakmem_get_statistics(&after));
    check(returned >= 1 << 20 && returned >= before.free_pages);
    check(after.free_pages == 0 && after.cached <= before.cached / 8);
    check(hakmem_purge() < returned / 8);
    for (unsigned i = 0; i < COUNT; i += 1000) {
        check(heap_holds(blocks[i], SIZE, i));
        free(blocks[i]);
    }
}

test(idle_may_be_said_at_any_time)
{
    for (int i = 0; i < 100; i++) {
        char *kept = hidden(malloc(100));
        free(hidden(malloc(3000)));
        heap_fill(kept, 100, 1);
        hakmem_idle();
        check(heap_holds(kept, 100, 1));
        free(kept);
        hakmem_idle();
    }
}

static atomic_bool is_over;

/* Blocks that come, grow, shrink and go, all to their last byte. */
static void *churn(void *seed)
{
    char *blocks[64] = {0};
    for (uint64_t i = (uintptr_t)seed; !atomic_load(&is_over); i = i * 6364136223846793005 + 1) {
        char **place = &blocks[i >> 33 & 63];
        const size_t size = (i >> 40 & 1) ? (i >> 41) % 300 : 256 + (i >> 41) % 64;
        if ((i >> 50 & 3) == 0) {
            free(*place);
            *place = NULL;
        } else {
            *place = realloc(*place, size + 1);
            memset(hidden(*place), (int)i, size + 1);
        }
    }
    for (size_t i = 0; i < 64; i++) free(blocks[i]);
    return NULL;
}

/* Where nothing is wrong nothing is found, whatever other threads do meanwhile. */
test(all_blocks_can_be_checked_at_any_time)
{
    enum { THREADS = 2, LOOKS = 3000, COUNT = 300 };
    int64_t junk;
    int64_t records;
    pthread_t threads[THREADS];
    void *blocks[COUNT];
    check_eq(hakmem_option_get("junk", &junk), 0);
    check_eq(hakmem_option_get("check_frees", &records), 0);
    for (size_t i = 0; i < COUNT; i++) blocks[i] = hidden(malloc(i));
    for (uintptr_t i = 0; i < THREADS; i++)
        check_eq(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
    for (int i = 0; i < LOOKS; i++) {
        const size_t count = hakmem_check();
        check(junk && records ? count >= COUNT - 1 : count == 0);
    }
    atomic_store(&is_over, true);
    for (size_t i = 0; i < THREADS; i++) check_eq(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < COUNT; i++) free(blocks[i]);
}

/* They look at all blocks, where the mode does; other threads were in the midst of something. */
test(children_of_a_fork_find_nothing_wrong_when_they_end)
{
    enum { THREADS = 2, FORKS = 300 };
    pthread_t threads[THREADS];
    atomic_store(&is_over, false);
    for (uintptr_t i = 0; i < THREADS; i++)
        check_eq(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
    (void)fflush(NULL);
    for (int i = 0; i < FORKS; i++) {
        int status = 1;
        const pid_t child = fork();
        check(child >= 0);
        if (child == 0) exit(0);
        check_eq(waitpid(child, &status, 0), child);
        check_eq(status, 0);
    }
    atomic_store(&is_over, true);
    for (size_t i = 0; i < THREADS; i++) check_eq(pthread_join(threads[i], NULL), 0);
}

static void *say_idle_first(void *unused)
{
    hakmem_idle(); /* This thread never allocated. */
    (void)hakmem_purge();
    return unused;
}

test(idle_and_purge_are_harmless_in_a_thread_without_a_cache)
{
    pthread_t thread;
    check_eq(pthread_create(&thread, NULL, say_idle_first, NULL), 0);
    check_eq(pthread_join(thread, NULL), 0);
}

test(statistics_follow_what_happens)
{
    enum { COUNT = 100, SIZE = 100000 };
    void *blocks[COUNT];
    hakmem_statistics_t before;
    hakmem_statistics_t during;
    hakmem_statistics_t after;
    check(!hakmem_get_statistics(NULL));
    check(hakmem_get_statistics(&before));
    for (size_t i = 0; i < COUNT; i++) blocks[i] = hidden(malloc(SIZE));
    void *huge = hidden(malloc((size_t)32 << 20));
    check(hakmem_get_statistics(&during));
    check(during.mapped >= during.used && during.metadata > 0 && during.system_calls > 0);
    check(during.used >= before.used + COUNT * (size_t)SIZE + ((size_t)32 << 20));
    check(during.huge_used >= before.huge_used + ((size_t)32 << 20));
    for (size_t i = 0; i < COUNT; i++) free(blocks[i]);
    free(huge);
    (void)hakmem_purge();
    check(hakmem_get_statistics(&after));
    check(after.used <= before.used && after.huge_used == before.huge_used);
    check(after.purged > before.purged && after.huge_cached == 0);
    check(before.free_pages <= before.mapped && after.free_pages <= after.mapped);
    free(hidden(malloc(SIZE)));
    hakmem_statistics_t idle;
    check(hakmem_get_statistics(&idle));
    check(idle.free_pages >= SIZE && idle.free_pages <= idle.mapped);
}

test(what_a_thread_keeps_is_counted_until_it_says_that_it_is_idle)
{
    enum { COUNT = 100, SIZE = 112 };
    void *blocks[COUNT];
    int64_t is_junk;
    hakmem_statistics_t kept;
    hakmem_statistics_t idle;
    check_eq(hakmem_option_get("junk", &is_junk), 0); /* then nothing is kept */
    const size_t bytes = is_junk ? 0 : COUNT * (size_t)SIZE;
    for (size_t i = 0; i < COUNT; i++) blocks[i] = hidden(malloc(SIZE));
    for (size_t i = 0; i < COUNT; i++) free(blocks[i]);
    check(hakmem_get_statistics(&kept));
    check(kept.cached >= bytes && kept.cached <= kept.mapped);
    hakmem_idle();
    check(hakmem_get_statistics(&idle));
    check(idle.cached <= kept.cached - bytes);
}

/* Slabs of 20,480 bytes each stand among the large blocks. */
test(what_lies_in_slabs_of_long_blocks_is_counted_once)
{
    enum { COUNT = 100, SIZE = 20480 };
    void *blocks[COUNT];
    hakmem_statistics_t before;
    hakmem_statistics_t during;
    check(hakmem_get_statistics(&before));
    for (size_t i = 0; i < COUNT; i++) blocks[i] = hidden(malloc(SIZE - 1));
    check(hakmem_get_statistics(&during));
    check_eq(during.used, before.used + COUNT * (size_t)SIZE);
    for (size_t i = 0; i < COUNT; i++) free(blocks[i]);
    check(hakmem_get_statistics(&during));
    check_eq(during.used, before.used);
}

test(options_are_found_by_name_and_unknown_ones_refused)
{
    int64_t value = -12345;
    check_eq(hakmem_option_get("no_such_option", &value), EINVAL);
    check_eq(hakmem_option_get("tiny_fast_cap", NULL), EINVAL);
    check_eq(value, -12345);
    check_eq(hakmem_option_get("tiny_fast_cap", &value), 0);
    check(value > 0 && value < 100000);
}

int main(int argc, char **argv)
{
    if (!heap_is_hakmem()) check_skip("needs HAKMEM");
    return check_run(argc, argv);
}
