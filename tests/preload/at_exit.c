/* The end of a process: exit handlers, destructors and a thread that is still at work. */
#include "check.h"

#include <pthread.h>

static char *from_constructor;
static char *from_main;

static void use(size_t size)
{
    free(memset(malloc(size), 1, size));
}

__attribute__((constructor)) static void before_main(void)
{
    from_constructor = strdup("built before main");
}

__attribute__((destructor)) static void after_everything(void)
{
    free(from_constructor);
    free(from_main);
    use(100);
    use(100000);
    (void)write(1, "destructor\n", 11);
}

static void at_exit(void)
{
    from_main = realloc(from_main, 5000);
    use(10000000);
    (void)write(1, "handler\n", 8);
}

static void *never_stop(void *unused)
{
    for (size_t i = 0;; i++) use(1 + i * 37 % 70000);
    return unused;
}

int main(void)
{
    pthread_t thread;
    from_main = strdup("built in main");
    check_eq(atexit(at_exit), 0);
    check_eq(pthread_create(&thread, NULL, never_stop, NULL), 0);
    check_eq(pthread_detach(thread), 0);
    for (int i = 0; i < 1000; i++) use((size_t)i + 1);
    return 0;
}
