/* Calls in a known order, for the tests of traces: ROUNDS of them in each thread. */
#include "check.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>

/* Handed from one thread to the next, which frees it. */
static void *handed;

static void all_kinds(void)
{
    void *volatile block = malloc(100);
    block = realloc(block, 50000);
    block = realloc(block, 3);
    free(block);
    block = calloc(7, 1000);
    free(block);
    block = aligned_alloc(4096, 8192);
    free(block);
    block = malloc((size_t)20 << 20);
    block = realloc(block, (size_t)40 << 20);
    free(block);
    free(NULL);
    block = realloc(NULL, 5);
    block = realloc(block, 0);
    check(realloc(handed, PTRDIFF_MAX) == NULL); /* nothing has changed then */
}

static void *work(void *rounds)
{
    for (uintptr_t round = 0; round < (uintptr_t)rounds; round++) all_kinds();
    free(handed);
    handed = malloc(77);
    return rounds;
}

int main(int argc, char **argv)
{
    const uintptr_t rounds = argc > 1 ? (uintptr_t)strtoul(argv[1], NULL, 10) : 1;
    pthread_t thread;
    handed = malloc(66);
    for (int i = 0; i < 3; i++) {
        check_eq(pthread_create(&thread, NULL, work, (void *)rounds), 0);
        check_eq(pthread_join(thread, NULL), 0);
    }
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 100; i++) all_kinds(); /* is in no trace */
        _exit(0);
    }
    check_eq(waitpid(child, NULL, 0), child);
    free(handed);
    return 0;
}
