/* A pointer into the middle of a huge block is freed. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(8 << 20);
    announce(block + (4 << 20));
    free(block + (4 << 20));
    return survived();
}
