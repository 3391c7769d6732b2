/* A local variable is grown. */
#include "misuse.h"

int main(void)
{
    char local[64];
    announce(local);
    realloc(local, 5000);
    return survived();
}
