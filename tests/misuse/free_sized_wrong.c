/* free_sized is told a size of another class. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(48);
    announce(block);
    release_sized(block, 5000);
    return survived();
}
