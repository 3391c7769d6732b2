/* The smallest program: allocates a little, prints what it holds, in KiB: now, at its peak. */
#include "stress/resident.h"

int main(void)
{
    char text[4096];
    void *blocks[50];
    for (size_t i = 0; i < 50; i++) blocks[i] = memset(malloc(i * 8 + 1), 1, i * 8 + 1);
    const size_t now_kib = resident_kib();
    check(resident_read("/proc/self/status", text, sizeof text) > 0);
    const char *peak = strstr(text, "VmHWM:");
    check(peak != NULL);
    for (size_t i = 0; i < 50; i++) free(blocks[i]);
    dprintf(1, "%zu %lu\n", now_kib, strtoul(peak + 6, NULL, 10));
    return 0;
}
