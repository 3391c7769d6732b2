/* A block is freed again after two others; the program ends without taking the caches apart. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(48);
    char *other = malloc(48);
    char *third = malloc(48);
    announce(block);
    free(block);
    free(other);
    free(third);
    free(block);
    say("survived\n");
    return 0;
}
