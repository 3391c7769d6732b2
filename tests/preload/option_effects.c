/* What an option changes, as one number: option_effects WHAT [ARGUMENT]. test_options.py compares
   the numbers with and without each option. Nothing is printed before the measurement is over. */
#include "api/heap.h"
#include "filter.h"
#include "weak.h"
#include "huge_pages.h"
#include "stress/resident.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/resource.h>

enum { COUNT = 3000 };

static void *blocks[COUNT];

static hakmem_statistics_t now(void)
{
    hakmem_statistics_t statistics;
    check(hakmem_get_statistics(&statistics));
    return statistics;
}

static void come_and_go(size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++) blocks[i] = memset(hidden(malloc(size)), 1, size);
    for (size_t i = 0; i < count; i++) free(blocks[i]);
}

static const char *argument = "";

static void tell(size_t number)
{
    (void)printf("%zu\n", number);
}

/* Length of a block for so many bytes. */
test(usable)
{
    tell(malloc_usable_size(hidden(malloc((size_t)atol(argument)))));
}

/* Bytes in thread caches and depots after small blocks have come and gone. */
test(cached)
{
    come_and_go(COUNT, 64);
    tell(now().cached);
}

test(huge_cached)
{
    come_and_go(1, 40 << 20);
    tell(now().huge_cached);
}

/* How many there are after much was freed. */
test(threads)
{
    come_and_go(100, 1 << 20);
    char text[4096] = "";
    FILE *file = fopen("/proc/self/status", "r");
    check(file != NULL && fread(text, 1, sizeof text - 1, file) > 0);
    tell(strtoul(strstr(text, "\nThreads:") + 9, NULL, 10));
}

/* Do free pages go back by themselves within some looks? */
test(purged)
{
    come_and_go(10, 100000);
    for (int look = 0; look < 20 && now().purged == 0; look++) {
        (void)usleep(110000); /* upkeep looks ten times a second */
        free(hidden(malloc(100000))); /* of the same length: the others stay where they are */
    }
    tell(now().purged != 0);
}

/* Bytes that are free and hold memory after some looks of upkeep, while 10 MiB are in use. */
test(kept)
{
    memset(hidden(malloc(10 << 20)), 1, 10 << 20);
    come_and_go(20, 1 << 20);
    for (int look = 0; look < 20 && now().free_pages >= 2 << 20; look++) {
        (void)usleep(110000); /* upkeep looks ten times a second */
        free(hidden(malloc(100000)));
    }
    tell(now().free_pages);
}

/* Is a file opened when 40 MiB are in use? If so, the kernel says no, and a note is made of it. */
static volatile sig_atomic_t is_opened;

static void note_open(int number)
{
    (void)number;
    is_opened = 1;
}

test(reads_files)
{
    static const int calls[] = {SYS_openat};
    check(signal(SIGSYS, note_open) != SIG_ERR);
    if (!filter(calls, 1, SECCOMP_RET_TRAP, SECCOMP_RET_ALLOW)) check_skip("no seccomp here");
    memset(hidden(malloc(40 << 20)), 1, 40 << 20);
    tell((size_t)is_opened);
}

/* Are huge pages asked for where small blocks lie? */
test(huge_pages)
{
    tell(asks_for_huge_pages(hidden(malloc(64))));
}

/* Page faults of small blocks that nobody writes to. */
test(faults_untouched)
{
    struct rusage before, after;
    check_eq(getrusage(RUSAGE_SELF, &before), 0);
    for (int i = 0; i < 60000; i++) (void)hidden(malloc(1024));
    check_eq(getrusage(RUSAGE_SELF, &after), 0);
    tell((size_t)(after.ru_minflt - before.ru_minflt));
}

/* Does a plugin that is opened with RTLD_DEEPBIND get its blocks from us? */
test(plugin_is_served)
{
    void *plugin = dlopen(argument, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    check(plugin != NULL);
    void *(*plugin_malloc)(size_t) = (void *(*)(size_t))dlsym(plugin, "plugin_malloc");
    tell(hakmem_owns(plugin_malloc(100)));
}

test(is_ours)
{
    tell(hakmem_owns(hidden(malloc(100))));
}

test(leak)
{
    for (int i = 0; i < atoi(argument); i++) blocks[i] = malloc(100 * ((size_t)i % 20 + 1));
    tell(0);
}

test(leak_in_heap)
{
    hakmem_heap_t *heap = hakmem_heap_new();
    for (int i = 0; i < atoi(argument); i++) blocks[i] = hakmem_heap_malloc(heap, 100);
}

/* KiB that are resident after a heap of 120 MiB was given up, once they have fallen below 20 MiB or
   20 seconds have passed, in which nothing is called. */
test(rest_after_heap)
{
    const size_t size = (size_t)atol(argument);
    hakmem_heap_t *heap = hakmem_heap_new();
    for (size_t sum = 0; sum < (size_t)120 << 20; sum += size)
        memset(hidden(hakmem_heap_malloc(heap, size)), 1, size);
    check(resident_kib() >= 120 << 10);
    hakmem_heap_destroy(heap);
    for (int look = 0; look < 200 && resident_kib() >= 20 << 10; look++) (void)usleep(100000);
    tell(resident_kib());
}

/* Streams that are never closed. One has the program's buffer. */
test(open_streams)
{
    static char buffer[1000];
    for (int i = 0; i < atoi(argument); i++) {
        FILE *stream = blocks[i] = fopen("/dev/null", "w");
        check(stream != NULL);
        if (i == 0) (void)setvbuf(stream, buffer, _IOFBF, sizeof buffer);
        (void)fputs("text", stream);
    }
    (void)printf("%d\n", getchar());
    (void)fputs("", stderr);
}

/* Has the kernel started us in secure mode (AT_SECURE)? */
test(is_secure)
{
    for (size_t size = 1; size < 1000000; size *= 2) free(memset(hidden(malloc(size)), 1, size));
    tell(getauxval(AT_SECURE));
}

int main(int argc, char **argv)
{
    check(argc >= 2);
    if (argc > 2) argument = argv[2];
    return check_run(2, argv);
}
