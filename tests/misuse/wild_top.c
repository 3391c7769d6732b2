/* The highest address is freed. */
#include "misuse.h"

int main(void)
{
    announce((void *)0xfffffffffffffff0);
    free((void *)0xfffffffffffffff0);
    return survived();
}
