/* Linked against libhakmem.a: the version is there, and malloc is the one that owns its blocks. */
#include "check.h"
#include "hakmem.h"

#include <malloc.h>
#include <pthread.h>

static void *use(void *unused)
{
    for (size_t size = 1; size < 10000000; size *= 3) {
        char *block = memset(malloc(size), 1, size);
        check(hakmem_owns(block));
        block = realloc(block, size * 2);
        check(hakmem_owns(block) && malloc_usable_size(block) >= size * 2);
        free(block);
        block = aligned_alloc(4096, size);
        check(hakmem_owns(block));
        free(block);
    }
    return unused;
}

int main(void)
{
    pthread_t thread;
    check(hakmem_version() != NULL);
    (void)use(NULL);
    check_eq(pthread_create(&thread, NULL, use, NULL), 0);
    check_eq(pthread_join(thread, NULL), 0);
    char *text = strdup("by the C library");
    check(hakmem_owns(text));
    free(text);
    (void)printf("%s\n", "ok"); /* stdio allocates as well. */
    return 0;
}
