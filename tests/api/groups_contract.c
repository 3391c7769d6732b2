/* Groups (hakmem_malloc_group): their blocks are blocks like any other, and do not hold the pages
   of those outside. */
#include "adds_up.h"
#include "check.h"
#include "heap.h"
#include "preload/weak.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>

enum { SIZE_COUNT = 12 };
static const size_t sizes[SIZE_COUNT] = {0,    1,     16,    100,    1000,    1024,
                                         1025, 32768, 32769, 100000, 1 << 20, 40 << 20};

/* ---- pages: first, while groups have numbers of size classes ---- */

enum { BLOCKS = 200000, KEPT_EACH = 50 };

static size_t resident(void)
{
    hakmem_statistics_t now;
    (void)hakmem_purge();
    check(hakmem_get_statistics(&now));
    check_adds_up(&now);
    return now.resident;
}

/* What a few blocks that stay hold, after many of their size have gone. */
static size_t held_by_few(unsigned group)
{
    static char *blocks[BLOCKS];
    free(hidden(malloc(1))); /* the heap begins */
    const size_t before = resident();
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = i % KEPT_EACH == 0 ? hakmem_malloc_group(group, 64) : malloc(64);
        check(hidden(blocks[i]) != NULL);
        blocks[i][0] = (char)i;
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        if (i % KEPT_EACH != 0) free(blocks[i]);
    const size_t held = resident();
    for (unsigned i = 0; i < BLOCKS; i += KEPT_EACH) {
        check(blocks[i][0] == (char)i);
        free(blocks[i]);
    }
    return held > before ? held - before : 0;
}

test(what_stays_in_a_group_holds_no_pages_of_others)
{
    const size_t together = held_by_few(0);
    const size_t apart = held_by_few(1);
    check(together > (size_t)8 << 20);
    check(apart < together / 4);
}

HAKMEM_GROUP_MALLOC(entry_malloc, 3)

test(blocks_of_a_group_are_blocks_like_others)
{
    for (unsigned group = 0; group <= HAKMEM_GROUPS + 1; group++)
        for (unsigned i = 0; i < SIZE_COUNT; i++) {
            unsigned char *block = hidden(hakmem_malloc_group(group, sizes[i]));
            check(block != NULL && heap_is_aligned(block, 16));
            check(malloc_usable_size(block) >= sizes[i] && hakmem_heap_of(block) == NULL);
            if (sizes[i] != 0) block[0] = block[sizes[i] - 1] = 7;
            block = hidden(realloc(block, sizes[i] * 2 + 1));
            check(block != NULL && (sizes[i] == 0 || block[0] == 7));
            free(block);
        }
    void *block = hidden(hakmem_malloc_group(UINT_MAX, 10));
    check(block != NULL);
    free(block);
}

test(alignments_hold_in_a_group)
{
    for (size_t alignment = 1; alignment <= (size_t)1 << 20; alignment *= 2)
        for (unsigned i = 0; i < SIZE_COUNT - 1; i++) {
            void *block = hidden(hakmem_aligned_alloc_group(1, alignment, sizes[i]));
            check(block != NULL && heap_is_aligned(block, alignment));
            free(block);
        }
}

test(what_cannot_be_had_is_said_as_ever)
{
    errno = 0;
    check(hakmem_malloc_group(1, hidden_size(SIZE_MAX)) == NULL && errno == ENOMEM);
    errno = 0;
    check(hakmem_aligned_alloc_group(1, 48, 10) == NULL && errno == EINVAL);
}

test(a_function_may_be_defined_for_a_group)
{
    char *block = hidden(entry_malloc(100));
    check(block != NULL && heap_is_aligned(block, 16));
    memset(block, 1, 100);
    free(block);
}

/* ---- threads ---- */

static void *use_a_fresh_group(void *argument)
{
    void *blocks[100];
    for (unsigned group = 1; group <= HAKMEM_GROUPS; group++) {
        for (unsigned i = 0; i < 100; i++) {
            blocks[i] = hakmem_malloc_group(group, i * 30 + 1);
            check(hidden(blocks[i]) != NULL);
        }
        for (unsigned i = 0; i < 100; i++) free(blocks[i]);
    }
    return argument;
}

test(threads_may_be_the_first_in_a_group_together)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        check_eq(pthread_create(&threads[i], NULL, use_a_fresh_group, NULL), 0);
    for (unsigned i = 0; i < THREADS; i++) check_eq(pthread_join(threads[i], NULL), 0);
}

int main(int argc, char **argv)
{
    if (!heap_is_hakmem()) check_skip("needs HAKMEM");
    return check_run(argc, argv);
}
