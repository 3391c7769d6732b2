/* What an option changes, as one number: option_effects WHAT [ARGUMENT]. test_options.py compares
   the numbers with and without each option. Nothing is printed before the measurement is over. */
#include "api/heap.h"
#include "check.h"
#include "hakmem.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#pragma weak hakmem_owns
#pragma weak hakmem_purge
#pragma weak hakmem_get_statistics
#pragma weak hakmem_heap_new
#pragma weak hakmem_heap_malloc
#pragma weak hakmem_heap_destroy

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

/* Length of a block for so many bytes. */
static size_t usable(const char *argument)
{
    return malloc_usable_size(hidden(malloc((size_t)atol(argument))));
}

/* Bytes in thread caches and depots after small blocks have come and gone. */
static size_t cached(const char *unused)
{
    (void)unused;
    come_and_go(COUNT, 64);
    return now().cached;
}

static pthread_barrier_t both;

static void *allocate_on(void *processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)(uintptr_t)processor, &set);
    check_eq(sched_setaffinity(0, sizeof set, &set), 0);
    void *block = hidden(malloc(100));
    (void)pthread_barrier_wait(&both); /* what an ended thread leaves would serve the other */
    return block;
}

/* The first processor that may be used, of those with even or odd numbers. */
static uintptr_t processor_of(unsigned parity, const cpu_set_t *set)
{
    uintptr_t processor = parity;
    while (processor < CPU_SETSIZE && !CPU_ISSET((size_t)processor, set)) processor += 2;
    return processor;
}

/* How far from each other two threads on different processors are served at first; 2: there are
   not two. */
static size_t distance(const char *unused)
{
    cpu_set_t set;
    pthread_t threads[2];
    void *found[2];
    (void)unused;
    check_eq(sched_getaffinity(0, sizeof set, &set), 0);
    check_eq(pthread_barrier_init(&both, NULL, 2), 0);
    for (unsigned i = 0; i < 2; i++)
        if (processor_of(i, &set) >= CPU_SETSIZE) return 2;
    for (unsigned i = 0; i < 2; i++)
        check_eq(pthread_create(&threads[i], NULL, allocate_on, (void *)processor_of(i, &set)), 0);
    for (unsigned i = 0; i < 2; i++) check_eq(pthread_join(threads[i], &found[i]), 0);
    const char *first = found[0];
    const char *second = found[1];
    return (size_t)(first < second ? second - first : first - second);
}

static size_t huge_cached(const char *unused)
{
    (void)unused;
    come_and_go(1, 40 << 20);
    return now().huge_cached;
}

/* How many there are after much was freed. */
static size_t threads(const char *unused)
{
    (void)unused;
    come_and_go(100, 1 << 20);
    char text[4096] = "";
    FILE *file = fopen("/proc/self/status", "r");
    check(file != NULL && fread(text, 1, sizeof text - 1, file) > 0);
    return strtoul(strstr(text, "\nThreads:") + 9, NULL, 10);
}

/* Do free pages go back by themselves within some looks? */
static size_t purged(const char *unused)
{
    (void)unused;
    come_and_go(10, 100000);
    for (int look = 0; look < 20 && now().purged == 0; look++) {
        (void)usleep(110000); /* upkeep looks ten times a second */
        free(hidden(malloc(100000))); /* of the same length: the others stay where they are */
    }
    return now().purged != 0;
}

/* Bytes that are free and hold memory after some looks of upkeep, while 10 MiB are in use. */
static size_t kept(const char *unused)
{
    (void)unused;
    memset(hidden(malloc(10 << 20)), 1, 10 << 20);
    come_and_go(20, 1 << 20);
    for (int look = 0; look < 20 && now().free_pages >= 2 << 20; look++) {
        (void)usleep(110000); /* upkeep looks ten times a second */
        free(hidden(malloc(100000)));
    }
    return now().free_pages;
}

/* Is a file opened when 40 MiB are in use? If so, the kernel says no, and a note is made of it. */
static volatile sig_atomic_t is_opened;

static void note_open(int number)
{
    (void)number;
    is_opened = 1;
}

static size_t reads_files(const char *unused)
{
    (void)unused;
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog filter = {4, program};
    check(signal(SIGSYS, note_open) != SIG_ERR);
    check_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) return 2;
    memset(hidden(malloc(40 << 20)), 1, 40 << 20);
    return (size_t)is_opened;
}

/* Are huge pages asked for where small blocks lie? */
static size_t asks_for_huge_pages(const char *unused)
{
    (void)unused;
    const uintptr_t block = (uintptr_t)hidden(malloc(64));
    char line[1024];
    bool is_inside = false;
    FILE *maps = fopen("/proc/self/smaps", "r");
    check(maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) is_inside = start <= block && block < end;
        if (is_inside && strncmp(line, "VmFlags:", 8) == 0) return strstr(line, " hg") != NULL;
    }
    return 2; /* this kernel does not say */
}

/* Page faults of small blocks that nobody writes to. */
static size_t faults_untouched(const char *unused)
{
    (void)unused;
    struct rusage before, after;
    check_eq(getrusage(RUSAGE_SELF, &before), 0);
    for (int i = 0; i < 60000; i++) (void)hidden(malloc(1024));
    check_eq(getrusage(RUSAGE_SELF, &after), 0);
    return (size_t)(after.ru_minflt - before.ru_minflt);
}

/* Does a plugin that is opened with RTLD_DEEPBIND get its blocks from us? */
static size_t plugin_is_served(const char *path)
{
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    check(plugin != NULL);
    void *(*plugin_malloc)(size_t) = (void *(*)(size_t))dlsym(plugin, "plugin_malloc");
    return hakmem_owns(plugin_malloc(100));
}

static size_t is_ours(const char *unused)
{
    (void)unused;
    return hakmem_owns(hidden(malloc(100)));
}

static size_t leak(const char *argument)
{
    for (int i = 0; i < atoi(argument); i++) blocks[i] = malloc(100 * ((size_t)i % 20 + 1));
    return 0;
}

static size_t leak_in_heap(const char *argument)
{
    hakmem_heap_t *heap = hakmem_heap_new();
    for (int i = 0; i < atoi(argument); i++) blocks[i] = hakmem_heap_malloc(heap, 100);
    return 0;
}

/* KiB of anonymous memory that are resident. */
static size_t resident_kib(void)
{
    char text[4096] = "";
    const int file = open("/proc/self/status", O_RDONLY);
    check(file >= 0 && read(file, text, sizeof text - 1) > 0);
    (void)close(file);
    return strtoul(strstr(text, "\nRssAnon:") + 9, NULL, 10);
}

/* The same after a heap of 120 MiB was given up, once that has fallen below 20 MiB or 20 seconds
   have passed, in which nothing is called. */
static size_t rest_after_heap(const char *argument)
{
    const size_t size = (size_t)atol(argument);
    hakmem_heap_t *heap = hakmem_heap_new();
    for (size_t sum = 0; sum < (size_t)120 << 20; sum += size)
        memset(hidden(hakmem_heap_malloc(heap, size)), 1, size);
    check(resident_kib() >= 120 << 10);
    hakmem_heap_destroy(heap);
    for (int look = 0; look < 200 && resident_kib() >= 20 << 10; look++) (void)usleep(100000);
    return resident_kib();
}

static const struct {
    const char *name;
    size_t (*measure)(const char *argument);
} rows[] = {
    {"usable", usable},
    {"cached", cached},
    {"distance", distance},
    {"huge_cached", huge_cached},
    {"threads", threads},
    {"purged", purged},
    {"kept", kept},
    {"reads_files", reads_files},
    {"asks_for_huge_pages", asks_for_huge_pages},
    {"faults_untouched", faults_untouched},
    {"plugin_is_served", plugin_is_served},
    {"is_ours", is_ours},
    {"leak", leak},
    {"leak_in_heap", leak_in_heap},
    {"rest_after_heap", rest_after_heap},
};

int main(int argc, char **argv)
{
    check(argc >= 2);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(argv[1], rows[i].name) == 0) {
            const size_t value = rows[i].measure(argc > 2 ? argv[2] : "");
            (void)printf("%zu\n", value);
            return 0;
        }
    return 1;
}
