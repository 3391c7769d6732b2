/* A pointer far into a large block is freed. */
#include "misuse.h"

int main(void)
{
    char *block = malloc((1 << 20));
    announce(block + (1 << 19));
    free(block + (1 << 19));
    return survived();
}
