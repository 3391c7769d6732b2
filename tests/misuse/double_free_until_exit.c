/* A block is freed again after another; the program then ends without taking the caches apart. */
#include "crime.h"

int main(void)
{
    char *block = malloc(48);
    char *other = malloc(48);
    announce(block);
    free(block);
    free(other);
    free(block);
    dprintf(1, "survived\n");
    return 0;
}
