/* Twice in a row, into a bin that was taken apart before. */
#include "misuse.h"

int main(void)
{
    char *volatile block = malloc(100);
    malloc_trim(0);
    announce(block);
    free(block);
    free(block);
    return survived();
}
