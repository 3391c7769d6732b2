/* A block of no bytes is written. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(0);
    announce(block);
    *block = 'x';
    return survived();
}
