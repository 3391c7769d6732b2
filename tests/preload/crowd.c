/* Many threads at once: crowd THREADS SIZES. Each has a few blocks of each of so many sizes. Prints
   how many KiB the process holds once all have ended, and then after malloc_trim. */
#include "api/heap.h"
#include "stress/resident.h"

#include <malloc.h>
#include <pthread.h>

enum { MOST_THREADS = 8000, MOST_SIZES = 60, TIMES = 4 };

static pthread_barrier_t gate;
static size_t size_count;

static void *live(void *unused)
{
    void *blocks[MOST_SIZES * TIMES];
    for (size_t i = 0; i < size_count * TIMES; i++) {
        blocks[i] = hidden(malloc(16 + i % size_count * 80));
        check(blocks[i] != NULL);
    }
    (void)pthread_barrier_wait(&gate);
    (void)pthread_barrier_wait(&gate);
    for (size_t i = 0; i < size_count * TIMES; i++) free(blocks[i]);
    return unused;
}

int main(int argc, char **argv)
{
    static pthread_t threads[MOST_THREADS];
    check_eq(argc, 3);
    const size_t count = strtoull(argv[1], NULL, 10);
    size_count = strtoull(argv[2], NULL, 10);
    check(count <= MOST_THREADS && size_count <= MOST_SIZES);
    pthread_attr_t small_stack;
    check_eq(pthread_attr_init(&small_stack), 0);
    check_eq(pthread_attr_setstacksize(&small_stack, 65536), 0);
    check_eq(pthread_barrier_init(&gate, NULL, (unsigned)count + 1), 0);
    for (size_t i = 0; i < count; i++)
        if (pthread_create(&threads[i], &small_stack, live, NULL) != 0) {
            (void)printf("so many threads cannot be had here\n");
            return 77;
        }
    (void)pthread_barrier_wait(&gate);
    (void)pthread_barrier_wait(&gate);
    for (size_t i = 0; i < count; i++) check_eq(pthread_join(threads[i], NULL), 0);
    const size_t joined = resident_kib();
    (void)malloc_trim(0);
    (void)printf("%zu %zu\n", joined, resident_kib());
    return 0;
}
