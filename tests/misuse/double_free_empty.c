/* A block of no bytes is freed twice. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(0);
    announce(block);
    free(block);
    free(block);
    return survived();
}
