/* A pointer into the middle of a tiny block is grown. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(1024);
    announce(block + 512);
    realloc(block + 512, 5000);
    return survived();
}
