/* A byte behind the end of a request for a group is written. */
#include "misuse.h"

void *hakmem_malloc_group(unsigned group, size_t size) __attribute__((weak));

int main(void)
{
    char *block = hakmem_malloc_group ? hakmem_malloc_group(2, 20) : malloc(20);
    announce(block);
    block[20] = 'x';
    free(block);
    return survived();
}
