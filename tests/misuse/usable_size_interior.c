/* The size of a pointer into a block is asked for. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(1024);
    announce(block + 512);
    malloc_usable_size(block + 512);
    return survived();
}
