/* A freed block is grown after another was freed. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(48);
    char *other = malloc(48);
    announce(block);
    free(block);
    free(other);
    realloc(block, 5000);
    return survived();
}
