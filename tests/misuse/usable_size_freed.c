/* The size of a freed block is asked for. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(48);
    announce(block);
    free(block);
    malloc_usable_size(block);
    return survived();
}
