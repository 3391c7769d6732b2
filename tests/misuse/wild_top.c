/* The highest address is freed. */
#include "crime.h"

int main(void)
{
    announce((void *)0xfffffffffffffff0);
    free((void *)0xfffffffffffffff0);
    return survived();
}
