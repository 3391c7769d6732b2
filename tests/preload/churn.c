/* A plain program: churn [threads]. Every size, some threads, stdio, a sorted result. Prints a sum
   that is the same under every allocator. */
#include "stress/payload.h"

#include <pthread.h>

static void *work(void *argument)
{
    uint64_t random = (uintptr_t)argument;
    uint64_t *sum = hidden(calloc(1, sizeof *sum));
    payload_t *blocks[128] = {NULL};
    for (size_t i = 0; i < 20000; i++) {
        payload_t **slot = &blocks[random_step(&random) % 128];
        if (*slot != NULL) *sum += (*slot)->seed;
        payload_free(*slot);
        *slot = payload_new(random_size(&random, i % 64 == 0 ? 23 : 13), random_step(&random));
    }
    for (size_t i = 0; i < 128; i++) payload_free(blocks[i]);
    return sum;
}

int main(int argc, char **argv)
{
    const size_t thread_count = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t *sum = work((void *)1);
    for (uintptr_t i = 0; i < thread_count; i++) {
        pthread_t thread;
        void *more = NULL;
        check_eq(pthread_create(&thread, NULL, work, (void *)(i + 2)), 0);
        check_eq(pthread_join(thread, &more), 0);
        *sum += *(uint64_t *)more;
        free(more);
    }
    (void)printf("%ju\n", (uintmax_t)*sum);
    free(sum);
    return 0;
}
