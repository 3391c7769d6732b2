/* A library whose fork handlers, registered before any of the program's, allocate and free. */
#include <pthread.h>
#include <stdlib.h>

static void use_the_heap(void)
{
    for (size_t size = 1; size < 10000000; size *= 3)
        free(malloc(size));
}

__attribute__((constructor)) static void registers(void)
{
    pthread_atfork(use_the_heap, use_the_heap, use_the_heap);
}
