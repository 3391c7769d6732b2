/* An aligned block is freed twice in a row. */
#include "misuse.h"

int main(void)
{
    char *block = memalign(4096, 4096);
    announce(block);
    free(block);
    free(block);
    return survived();
}
