/* A pointer into the middle of a large block is grown. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(262144);
    announce(block + 4096);
    realloc(block + 4096, 1 << 20);
    return survived();
}
