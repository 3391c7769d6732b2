/* An address where nothing is mapped is grown. */
#include "misuse.h"

int main(void)
{
    announce((void *)0x123456789a0);
    realloc((void *)0x123456789a0, 5000);
    return survived();
}
