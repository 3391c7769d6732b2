/* No misuse: everything that the others misuse, used well. Must end silently with status 0. */
#include "misuse.h"

int main(void)
{
    char *blocks[300];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 300; i++) blocks[i] = malloc((size_t)(i * i));
        for (int i = 0; i < 300; i++) blocks[i] = realloc(blocks[i], (size_t)(i * i * 2 + 1));
        for (int i = 0; i < 300; i++) malloc_usable_size(blocks[i]);
        for (int i = 0; i < 300; i++) free(blocks[i]);
        char *huge = malloc(8 << 20);
        realloc(realloc(huge, 16 << 20), 0);
        char *aligned = memalign(4096, 4096);
        free(aligned);
        free(NULL);
    }
    announce(blocks);
    return survived();
}
