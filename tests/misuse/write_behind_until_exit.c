/* A byte behind the end of a block is written; the program ends without freeing it. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(20);
    announce(block);
    block[20] = 'x';
    say("survived\n");
    return 0;
}
