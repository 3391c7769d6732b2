/* A large block is freed twice in a row. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(262144);
    announce(block);
    free(block);
    free(block);
    return survived();
}
