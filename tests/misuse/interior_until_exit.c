/* A pointer into the middle of a tiny block is freed; the program then simply ends. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(1024);
    announce(block + 512);
    free(block + 512);
    say("survived\n");
    return 0;
}
