/* A number that can be no address is freed. */
#include "misuse.h"

int main(void)
{
    announce((void *)0xdeadbeefdeadbee0);
    free((void *)0xdeadbeefdeadbee0);
    return survived();
}
