/* A function is freed. */
#include "crime.h"

int main(void)
{
    announce((void *)main);
    free((void *)main);
    return survived();
}
