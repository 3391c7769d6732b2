/* A block is freed again after its memory was given back. */
#include "misuse.h"

int main(void)
{
    char *others[300];
    char *block = malloc(4096);
    for (int i = 0; i < 300; i++) others[i] = malloc(4096);
    announce(block);
    for (int i = 0; i < 300; i++) free(others[i]);
    free(block);
    malloc_trim(0);
    free(block);
    return survived();
}
