/* A freed block is written, and handed out to nobody before the program ends. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(100);
    announce(block);
    free(block);
    block[50] = 'x';
    say("survived\n");
    return 0;
}
