/* A pointer into the second page of a large block is freed. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(262144);
    announce(block + 4096);
    free(block + 4096);
    return survived();
}
