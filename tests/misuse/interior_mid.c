/* A pointer into the middle of a mid block is freed. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(32768);
    announce(block + 16384);
    free(block + 16384);
    return survived();
}
