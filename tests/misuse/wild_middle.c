/* An address where nothing is mapped is freed. */
#include "misuse.h"

int main(void)
{
    announce((void *)0x123456789a0);
    free((void *)0x123456789a0);
    return survived();
}
