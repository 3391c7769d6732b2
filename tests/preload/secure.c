/* Tells whether the kernel started us in secure mode (AT_SECURE), after some use of the heap. */
#include "check.h"

#include <sys/auxv.h>

int main(void)
{
    for (size_t size = 1; size < 1000000; size *= 2) free(memset(malloc(size), 1, size));
    dprintf(1, "secure %lu\n", getauxval(AT_SECURE));
    return 0;
}
