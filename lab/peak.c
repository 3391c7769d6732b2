/* The peak sampler: preloaded behind the allocator, it writes down where memory is while the
 * process holds most of it. The file that PEAK_FILE names (%p is the process) gets a row of
 * numbers, which a higher peak replaces:
 *
 *   process, bytes resident, part of them of files, then for HAKMEM the words of
 *   hakmem_statistics_t, or for the C library the words of struct mallinfo2
 *
 * A thread of its own looks each millisecond. The thread allocates nothing. The child of a fork
 * has no such thread, and what a program executes gets one anew. Built by CMakeLists.txt for
 * tools/attribution.py. */

#define _GNU_SOURCE
#include "hakmem.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_NS = 1000000, STACK = 64 << 10 };
enum { STEP = 512 }; /* a peak counts as higher from so small a part on */

typedef bool (*ask_hakmem_t)(hakmem_statistics_t *);
typedef struct mallinfo2 (*ask_libc_t)(void);

static struct {
    int memory; /* /proc/self/statm */
    int record;
    ask_hakmem_t ask_hakmem;
    ask_libc_t ask_libc;
    size_t highest;
    size_t page;
} self;

/* Pages resident, and those of files. */
static bool look(size_t pages[2])
{
    char text[128];
    const ssize_t length = pread(self.memory, text, sizeof text - 1, 0);
    if (length <= 0) return false;
    text[length] = '\0';
    return sscanf(text, "%*u %zu %zu", &pages[0], &pages[1]) == 2;
}

static void write_row(const size_t pages[2], const size_t *words, size_t count)
{
    char text[1024];
    int length = snprintf(text, sizeof text, "%d %zu %zu", (int)getpid(),
                          pages[0] * self.page, pages[1] * self.page);
    for (size_t index = 0; index < count && (size_t)length < sizeof text - 32; index++)
        length += snprintf(text + length, sizeof text - (size_t)length, " %zu", words[index]);
    memset(text + length, ' ', sizeof text - (size_t)length); /* a longer row was there */
    text[sizeof text - 1] = '\n';
    (void)!pwrite(self.record, text, sizeof text, 0);
}

static void note_if_higher(void)
{
    size_t pages[2];
    if (!look(pages) || pages[0] <= self.highest + self.highest / STEP) return;
    self.highest = pages[0];
    if (self.ask_hakmem != NULL) {
        hakmem_statistics_t found = {0};
        self.ask_hakmem(&found);
        write_row(pages, (const size_t *)&found, sizeof found / sizeof(size_t));
    } else {
        const struct mallinfo2 found = self.ask_libc();
        write_row(pages, (const size_t *)&found, sizeof found / sizeof(size_t));
    }
}

static void *watch(void *unused)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    for (;;) {
        note_if_higher();
        nanosleep(&pause, NULL);
    }
    return unused;
}

/* High numbers, which programs leave alone. */
static int open_high(const char *path, int flags)
{
    const int low = open(path, flags | O_CLOEXEC, 0666);
    const int high = low < 0 ? low : fcntl(low, F_DUPFD_CLOEXEC, 200);
    if (low >= 0) close(low);
    return high;
}

static void start_thread(void)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    (void)pthread_create(&thread, &attributes, watch, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

static __attribute__((constructor)) void begin(void)
{
    const char *name = getenv("PEAK_FILE");
    const char *place = name == NULL ? NULL : strstr(name, "%p");
    char path[4096];
    if (place == NULL) return;
    snprintf(path, sizeof path, "%.*s%d%s", (int)(place - name), name, (int)getpid(), place + 2);
    self.memory = open_high("/proc/self/statm", O_RDONLY);
    /* Any user may write into the folder: neither to where a link leads nor to a pipe. */
    self.record = open_high(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK);
    self.page = (size_t)sysconf(_SC_PAGESIZE);
    self.ask_hakmem = (ask_hakmem_t)dlsym(RTLD_DEFAULT, "hakmem_get_statistics");
    self.ask_libc = (ask_libc_t)dlsym(RTLD_DEFAULT, "mallinfo2");
    if (self.memory >= 0 && self.record >= 0 &&
        (self.ask_hakmem != NULL || self.ask_libc != NULL))
        start_thread();
}
