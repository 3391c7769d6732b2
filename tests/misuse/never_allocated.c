/* The next slot of the slab was never handed out. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(60);
    announce(block + 64);
    free(block + 64);
    return survived();
}
