/* A block is freed again after two other frees. */
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
    return survived();
}
