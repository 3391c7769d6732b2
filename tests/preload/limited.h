/* What programs share that come to a limit of memory: lists of blocks, and what is mapped. */
#ifndef HAKMEM_TESTS_LIMITED_H
#define HAKMEM_TESTS_LIMITED_H

#include "api/heap.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

enum { MIB = 1 << 20 };

typedef struct link {
    struct link *next;
} link_t;

/* Blocks until no more can be had, or until they have `most` bytes: the last one, which is linked
   to those before it. `count` becomes how many there are. */
static inline link_t *fill(size_t size, size_t most, size_t *count)
{
    link_t *last = NULL;
    for (*count = 0; *count * size < most; (*count)++) {
        errno = 0;
        link_t *link = (link_t *)hidden(malloc(size));
        if (link == NULL) {
            check_eq(errno, ENOMEM);
            break;
        }
        memset(link, 0x5a, size);
        link->next = last;
        last = link;
    }
    return last;
}

/* How many blocks could be had. They still hold what was written to them. */
static inline size_t fill_and_free(size_t size, size_t most)
{
    size_t count;
    for (link_t *next, *link = fill(size, most, &count); link != NULL; link = next) {
        next = link->next;
        check(size == sizeof *link || ((unsigned char *)link)[size - 1] == 0x5a);
        check(malloc_usable_size(link) >= size);
        free(link);
    }
    return count;
}

/* Reads without allocating. */
static inline size_t address_space_bytes(void)
{
    char text[128];
    const int file = open("/proc/self/statm", O_RDONLY);
    const ssize_t length = read(file, text, sizeof text - 1);
    check(length > 0 && close(file) == 0);
    text[length] = '\0';
    return strtoul(text, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

static inline void set_limit(int resource, size_t bytes)
{
    check_eq(setrlimit(resource, &(struct rlimit){bytes, bytes}), 0);
}
#endif
