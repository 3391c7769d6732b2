/* Groups (hakmem_malloc_group) that several threads ask first, for one size after another: a class
 * is made, and all of them use it at once. */
#include "preload/weak.h"
#include "stress/payload.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { THREADS = 4, BLOCKS = 200, BOXES = 64, LONGEST = 1000 };

static payload_t *_Atomic mailboxes[BOXES];
static pthread_barrier_t together;

/* Blocks of the group, left for others to resize or free. */
static void exchange_blocks(unsigned group, size_t size, uint64_t *random)
{
    for (unsigned step = 0; step < BLOCKS; step++) {
        void *block = hidden(hakmem_malloc_group(group, size));
        check(block != NULL && heap_is_aligned(block, 16));
        payload_t *_Atomic *box = &mailboxes[random_step(random) % BOXES];
        payload_t *other = atomic_exchange(box, payload_put(block, size, random_step(random)));
        if (other == NULL)
            continue;
        payload_verify(other);
        if (step % 4 == 0)
            other = payload_put(hidden(realloc(hidden(other), size * 2)), size * 2, step);
        payload_free(other);
    }
}

static void *ask_first(void *argument)
{
    uint64_t random = (uintptr_t)argument;
    for (size_t size = 32; size <= LONGEST; size += size / 2)
        for (unsigned group = 1; group <= HAKMEM_GROUPS; group++) {
            (void)pthread_barrier_wait(&together);
            exchange_blocks(group, size, &random);
        }
    return NULL;
}

test(blocks_of_groups_that_are_new_to_all_keep_what_they_contain)
{
    pthread_t threads[THREADS];
    check_eq(pthread_barrier_init(&together, NULL, THREADS), 0);
    for (unsigned i = 0; i < THREADS; i++)
        check_eq(pthread_create(&threads[i], NULL, ask_first, (void *)(uintptr_t)i), 0);
    for (unsigned i = 0; i < THREADS; i++)
        check_eq(pthread_join(threads[i], NULL), 0);
    for (unsigned i = 0; i < BOXES; i++)
        payload_free(mailboxes[i]);
}

int main(int argc, char **argv)
{
    if (!heap_is_hakmem())
        check_skip("needs HAKMEM");
    return check_run(argc, argv);
}
