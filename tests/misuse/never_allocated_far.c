/* A slot of the slab that was never handed out, far from those that were; the program then ends. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(10);
    announce(block + 4 * 4096);
    free(block + 4 * 4096);
    say("survived\n");
    return 0;
}
