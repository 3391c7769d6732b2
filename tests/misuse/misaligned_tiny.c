/* A pointer one byte into a tiny block is freed. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(64);
    announce(block + 1);
    free(block + 1);
    return survived();
}
