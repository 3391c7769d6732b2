/* A pointer eight bytes into a large block is freed. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(131072);
    announce(block + 8);
    free(block + 8);
    return survived();
}
