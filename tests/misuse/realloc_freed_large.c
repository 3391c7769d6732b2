/* A freed large block is grown. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(262144);
    announce(block);
    free(block);
    realloc(block, 1 << 20);
    return survived();
}
