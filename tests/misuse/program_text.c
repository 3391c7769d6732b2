/* A function is freed. */
#include "misuse.h"

int main(void)
{
    announce((void *)main);
    free((void *)main);
    return survived();
}
