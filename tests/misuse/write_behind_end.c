/* A byte behind the end of the request is written. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(20);
    announce(block);
    block[20] = 'x';
    free(block);
    return survived();
}
