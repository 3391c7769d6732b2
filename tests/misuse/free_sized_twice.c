/* A block is freed twice in a row by free_sized. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(48);
    announce(block);
    release_sized(block, 48);
    release_sized(block, 48);
    return survived();
}
