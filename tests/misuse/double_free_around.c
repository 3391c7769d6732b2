/* A block is freed, then another, then the first again. */
#include "crime.h"

int main(void)
{
    char *block = malloc(48);
    char *other = malloc(48);
    announce(block);
    free(block);
    free(other);
    free(block);
    return survived();
}
