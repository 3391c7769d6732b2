/* What the sandboxed programs share: the memory that was used before, and looks at the process. */
#ifndef HAKMEM_TESTS_SANDBOXED_H
#define HAKMEM_TESTS_SANDBOXED_H

#include "check.h"

#include <dirent.h>
#include <errno.h>
#include <sys/wait.h>

enum { MEBIBYTE = 1 << 20, USED_BYTES = 200 * MEBIBYTE, BLOCKS_MOST = 25000 };

static char *blocks[BLOCKS_MOST];

static inline void fill(size_t size)
{
    for (size_t at = 0; at < USED_BYTES / size; at++) {
        blocks[at] = (char *)malloc(size);
        check(blocks[at] != NULL);
        memset(blocks[at], 1, size);
    }
}

static inline void free_backwards(size_t size)
{
    for (size_t at = USED_BYTES / size; at-- > 0;) free(blocks[at]);
}

/* Fills and frees 200 MiB, four times: blocks of slabs, of pages, and some with mappings. */
static inline void use_much(void)
{
    static const size_t sizes[] = {10000, 60000, 1000000, 50 * MEBIBYTE};
    for (unsigned which = 0; which < 4; which++) {
        fill(sizes[which]);
        free_backwards(sizes[which]);
    }
}

/* A field of a task's file `status`, as text without the name; "" when there is none. */
static inline const char *status_field(const char *process, const char *task, const char *name)
{
    static char line[300];
    char path[100];
    (void)snprintf(path, sizeof path, "/proc/%s/task/%s/status", process, task);
    FILE *file = fopen(path, "re");
    if (file == NULL) return "";
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':') {
            (void)fclose(file);
            return line + strlen(name) + 2;
        }
    (void)fclose(file);
    return "";
}

/* Calls `visit` (or nothing) with each task of the process, and returns how many there are. */
static inline unsigned visit_tasks(const char *process, void (*visit)(const char *, const char *))
{
    char path[64];
    unsigned count = 0;
    (void)snprintf(path, sizeof path, "/proc/%s/task", process);
    DIR *folder = opendir(path);
    if (folder == NULL) return 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        if (visit != NULL) visit(process, entry->d_name);
        count++;
    }
    (void)closedir(folder);
    return count;
}

static inline size_t resident_kib(void)
{
    unsigned long size = 0;
    unsigned long resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    check(file != NULL && fscanf(file, "%lu %lu", &size, &resident) == 2);
    (void)fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}
#endif
