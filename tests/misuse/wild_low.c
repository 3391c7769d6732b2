/* A small number is freed. */
#include "misuse.h"

int main(void)
{
    announce((void *)0x10);
    free((void *)0x10);
    return survived();
}
