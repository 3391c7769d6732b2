/* A byte behind the end is written after realloc has made the block shorter in its place. */
#include "misuse.h"

int main(void)
{
    char *block = realloc(malloc(100), 90);
    announce(block);
    block[90] = 'x';
    free(block);
    return survived();
}
