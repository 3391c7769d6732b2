/* The size of a freed large block is asked for. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(262144);
    announce(block);
    free(block);
    malloc_usable_size(block);
    return survived();
}
