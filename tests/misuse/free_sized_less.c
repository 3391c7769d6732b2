/* free_sized names fewer bytes than were asked for, of the same size class. */
#include "misuse.h"

int main(void)
{
    char *block = malloc(1000);
    announce(block);
    release_sized(block, 990);
    return survived();
}
