/* A block is freed, then two others, then the first again; all of it is in use again at the end. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(48);
    char *other = malloc(48);
    char *third = malloc(48);
    announce(block);
    free(block);
    free(other);
    free(third);
    free(block);
    malloc(48);
    malloc(48);
    malloc(48);
    malloc(48);
    return survived();
}
