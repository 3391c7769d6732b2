/* A pointer into the middle of a tiny block is freed. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(1024);
    announce(block + 512);
    free(block + 512);
    return survived();
}
