/* An array of objects is freed past the 8 bytes that hold its length. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(200);
    announce(block + 8);
    free(block + 8);
    return survived();
}
