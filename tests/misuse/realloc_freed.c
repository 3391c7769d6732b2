/* A freed block is grown. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(48);
    announce(block);
    free(block);
    realloc(block, 5000);
    return survived();
}
