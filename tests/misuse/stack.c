/* A local variable is freed. */
#include "misuse.h"

int main(void)
{
    char local[64];
    announce(local);
    free(local);
    return survived();
}
