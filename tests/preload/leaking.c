/* Leaks in known amounts from known functions, for the tests of reports by call stack. */
#include "check.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>

#define NOINLINE __attribute__((noinline))

/* Kept where the compiler cannot see that nobody uses it. */
static void *volatile kept[10000];
static size_t kept_count;

NOINLINE void *allocate(size_t size)
{
    void *block = malloc(size);
    kept[kept_count++] = block;
    return block;
}

NOINLINE void leak_threes(void)
{
    for (volatile int i = 0; i < 3; i++) (void)allocate(100); /* one place, not three */
}

NOINLINE void leak_large(void)
{
    kept[kept_count++] = calloc(1, 100000);
}

NOINLINE void leak_grown(void)
{
    void *block = NULL;
    for (size_t size = 10; size <= 5000; size *= 2) block = realloc(block, size);
    kept[kept_count++] = block;
}

NOINLINE void leak_aligned(void)
{
    kept[kept_count++] = aligned_alloc(64, 640);
}

test(come_and_go)
{
    for (size_t size = 0; size < 100000; size = size * 2 + 1) {
        void *volatile block = malloc(size);
        free(block);
    }
}

/* Blocks that stay, or whose pages move. */
test(resized)
{
    static const size_t sizes[][2] = {{20, 25}, {100000, 90000}, {70 << 20, 90 << 20}};
    for (volatile int i = 0; i < 3; i++)
        kept[kept_count++] = realloc(malloc(sizes[i][0]), sizes[i][1]);
}

static void *work(void *unused)
{
    come_and_go();
    leak_threes();
    return unused;
}

/* All of it, in the sight of a second thread, which leaks as well and is joined. */
test(leak_all)
{
    pthread_t thread;
    leak_threes();
    leak_large();
    leak_grown();
    leak_aligned();
    come_and_go();
    check_eq(pthread_create(&thread, NULL, work, NULL), 0);
    check_eq(pthread_join(thread, NULL), 0);
}

test(overflow)
{
    char *volatile block = allocate(100);
    block[100] = 1;
    free(block);
}

NOINLINE void release(char *block)
{
    free(block);
}

/* `how` to misuse a block that release has freed. */
static void misuse_freed(const char *how)
{
    static const size_t sizes[] = {100, 100000};
    char *volatile block = allocate(sizes[strcmp(how, "large twice") == 0]);
    release(block);
    if (strstr(how, "twice") != NULL) free(block);
    if (strcmp(how, "realloc freed") == 0) block = realloc(block, 200);
    if (strcmp(how, "write freed") == 0) block[50] = 1;
}

static void *come_and_end(void *nothing)
{
    free(malloc(100));
    return nothing;
}

/* The loader keeps a block for each stack, which is kept for the next thread. */
test(threads)
{
    pthread_t threads[3];
    for (unsigned i = 0; i < 3; i++)
        check_eq(pthread_create(&threads[i], NULL, come_and_end, NULL), 0);
    for (unsigned i = 0; i < 3; i++) check_eq(pthread_join(threads[i], NULL), 0);
}

test(end)
{
    leak_large();
    _exit(0);
}

test(fork_once)
{
    leak_large();
    const pid_t child = fork();
    if (child == 0) exit(0);
    check_eq(waitpid(child, NULL, 0), child);
}

/* A second argument makes the status 3. */
int main(int argc, char **argv)
{
    check(argc > 1);
    (void)printf("the buffer of stdout is no leak\n");
    misuse_freed(argv[1]);
    const int status = check_run(2, argv);
    return argc > 2 ? 3 : status;
}
