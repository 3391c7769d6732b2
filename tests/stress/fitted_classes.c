/* Sizes that come and go by the thousand: classes are made for them, and withdrawn, while threads
 * allocate, resize, align and free blocks of all of them. */
#include "stress/payload.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { THREADS = 4, BLOCKS = 1500, PHASES = 8, SIZES = 12 };

/* Each a little above a class, and of another alignment than the class has. */
static const size_t sizes[SIZES] = {1040,  2064, 4112, 4368, 8208,  8464,
                                    12304, 1104, 5136, 9232, 18448, 2320};

static payload_t *_Atomic mailboxes[BLOCKS];

static payload_t *one_more(size_t size, uint64_t *random)
{
    size_t alignment = (size_t)16 << random_step(random) % 9;
    if (random_step(random) % 4 != 0)
        return payload_new(size, random_step(random));
    void *block = hidden(aligned_alloc(alignment, (size + alignment - 1) & -alignment));
    check(heap_is_aligned(block, alignment) && malloc_usable_size(block) >= size);
    return payload_put(block, size, random_step(random));
}

static void *allocate_in_phases(void *argument)
{
    uint64_t random = (uintptr_t)argument;
    for (unsigned phase = 0; phase < soak_count(PHASES, 1000); phase++) {
        size_t size = sizes[(phase + (uintptr_t)argument) % SIZES];
        for (unsigned step = 0; step < BLOCKS; step++) {
            payload_t *_Atomic *box = &mailboxes[random_step(&random) % BLOCKS];
            size_t asked = step % 8 == 0 ? size - 16 * (random_step(&random) % 16) : size;
            payload_t *other = atomic_exchange(box, one_more(asked, &random));
            if (other != NULL) {
                payload_verify(other);
                if (step % 16 == 0)
                    other = payload_put(hidden(realloc(hidden(other), size + 16)), size, step);
                payload_free(other);
            }
        }
    }
    return NULL;
}

test(blocks_of_sizes_that_come_and_go_keep_what_they_contain)
{
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        check_eq(pthread_create(&threads[i], NULL, allocate_in_phases, (void *)(uintptr_t)i), 0);
    for (unsigned i = 0; i < THREADS; i++)
        check_eq(pthread_join(threads[i], NULL), 0);
    for (unsigned i = 0; i < BLOCKS; i++)
        payload_free(mailboxes[i]);
}

check_main()
