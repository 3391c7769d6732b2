/* A freed block is written, and handed out again. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(100);
    announce(block);
    free(block);
    block[50] = 'x';
    for (int i = 0; i < 2000; i++) malloc(100);
    return survived();
}
