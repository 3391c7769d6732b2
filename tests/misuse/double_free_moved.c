/* realloc has moved the block away; its old address is freed. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(64);
    announce(block);
    char *moved = realloc(block, 100000);
    if (moved == block) return 2;
    free(block);
    return survived();
}
