/* realloc to zero has freed the block already. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(48);
    announce(block);
    realloc(block, 0);
    free(block);
    return survived();
}
