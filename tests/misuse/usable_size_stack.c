/* The size of a local variable is asked for. */
#include "crime.h"

int main(void)
{
    char local[64];
    announce(local);
    malloc_usable_size(local);
    return survived();
}
