/* The size of a local variable is asked for. */
#include "misuse.h"

int main(void)
{
    char local[64];
    announce(local);
    malloc_usable_size(local);
    return survived();
}
