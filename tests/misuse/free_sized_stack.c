/* A local variable is freed by free_sized. */
#include "misuse.h"

int main(void)
{
    char local[64];
    announce(local);
    release_sized(local, 64);
    return survived();
}
