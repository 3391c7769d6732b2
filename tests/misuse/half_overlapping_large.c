/* The freed tail of a large block that was shrunk is freed as if it were a block. */
#include "misuse.h"

int main(void)
{
    char *block = malloc((1 << 20));
    block = realloc(block, 1 << 18);
    announce(block + (1 << 19));
    free(block + (1 << 19));
    return survived();
}
