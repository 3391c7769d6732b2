/* Whether the kernel was asked for huge pages where a block lies. */
#ifndef HAKMEM_TESTS_HUGE_PAGES_H
#define HAKMEM_TESTS_HUGE_PAGES_H

#include "check.h"

static inline bool asks_for_huge_pages(const void *block)
{
    char line[1024];
    bool is_inside = false;
    FILE *maps = fopen("/proc/self/smaps", "re");
    check(maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
            is_inside = start <= (uintptr_t)block && (uintptr_t)block < end;
        if (!is_inside || strncmp(line, "VmFlags:", 8) != 0) continue;
        (void)fclose(maps);
        return strstr(line, " hg") != NULL;
    }
    check_skip("this kernel does not say");
}
#endif
