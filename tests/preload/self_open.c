/* Loads HAKMEM itself at run time, beside the C library's malloc: self_open LIBRARY. Its thread
   data must fit into what the loader keeps free, both heaps must work side by side, and a thread
   that used it may end after dlclose. */
#include "check.h"

#include <dlfcn.h>
#include <pthread.h>

static void *(*their_malloc)(size_t);
static void (*their_free)(void *);
static pthread_barrier_t gate;

static void use_both(void)
{
    for (size_t size = 1; size < 100000; size *= 3) {
        char *theirs = memset(their_malloc(size), 1, size);
        char *ours = memset(malloc(size), 2, size);
        check(theirs[size - 1] == 1 && ours[size - 1] == 2);
        free(ours);
        their_free(theirs);
    }
}

static void *outlive_the_library(void *unused)
{
    use_both();
    (void)pthread_barrier_wait(&gate);
    (void)pthread_barrier_wait(&gate);
    return unused;
}

int main(int argc, char **argv)
{
    check_eq(argc, 2);
    for (int round = 0; round < 20; round++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) puts(dlerror());
        check(library != NULL);
        their_malloc = (void *(*)(size_t))dlsym(library, "malloc");
        their_free = (void (*)(void *))dlsym(library, "free");
        use_both();
        pthread_t thread;
        check_eq(pthread_barrier_init(&gate, NULL, 2), 0);
        check_eq(pthread_create(&thread, NULL, outlive_the_library, NULL), 0);
        (void)pthread_barrier_wait(&gate);
        check_eq(dlclose(library), 0);
        (void)pthread_barrier_wait(&gate);
        check_eq(pthread_join(thread, NULL), 0);
        check_eq(pthread_barrier_destroy(&gate), 0);
    }
    (void)puts("ok");
    return 0;
}
