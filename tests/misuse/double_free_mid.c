/* A mid block is freed twice in a row. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(8192);
    announce(block);
    free(block);
    free(block);
    return survived();
}
