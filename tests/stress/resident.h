/* How much memory this process holds, without pages of files, read without allocating any. */
#ifndef HAKMEM_TESTS_RESIDENT_H
#define HAKMEM_TESTS_RESIDENT_H

#include "check.h"

#include <fcntl.h>

static inline size_t resident_read(const char *path, char *text, size_t capacity)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    size_t length = 0;
    ssize_t got;
    while ((got = read(file, text + length, capacity - 1 - length)) > 0) length += (size_t)got;
    (void)close(file);
    text[length] = '\0';
    return length;
}

/* Pages of files are left out: how many of them a fault maps depends on the kernel's page cache,
   and may be megabytes. The sum over the page tables where the kernel offers it: statm lags by
   pages per processor. */
static inline size_t resident_kib(void)
{
    char text[4096];
    if (resident_read("/proc/self/smaps_rollup", text, sizeof text) > 0) {
        static const char head[] = "\nAnonymous:";
        const char *line = strstr(text, head);
        check(line != NULL);
        return strtoul(line + strlen(head), NULL, 10);
    }
    check(resident_read("/proc/self/statm", text, sizeof text) > 0);
    char *next = NULL;
    (void)strtoul(text, &next, 10);
    const size_t resident = strtoul(next, &next, 10);
    const size_t of_files = strtoul(next, NULL, 10);
    return (resident - of_files) * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

#ifdef __SANITIZE_THREAD__ /* whose tables grow with what the program touches */
static const bool resident_is_ours = false;
#else
static const bool resident_is_ours = true;
#endif

static inline void resident_must_not_exceed(const char *when, size_t now_kib, size_t limit_kib)
{
    (void)printf("resident %s: %zu KiB, allowed %zu KiB\n", when, now_kib, limit_kib);
    check(now_kib <= limit_kib || !resident_is_ours);
}

#endif
