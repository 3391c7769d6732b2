/* A block is freed again after 300 other frees of its size. */
#include "misuse.h"

int main(void)
{
    char *others[300];
    char *block = malloc(64);
    for (int i = 0; i < 300; i++) others[i] = malloc(64);
    announce(block);
    free(block);
    for (int i = 0; i < 300; i++) free(others[i]);
    free(block);
    return survived();
}
