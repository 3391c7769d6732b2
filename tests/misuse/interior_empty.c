/* A pointer behind a block of no bytes is freed. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(0);
    announce(block + 1);
    free(block + 1);
    return survived();
}
