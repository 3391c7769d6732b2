/* A forged header in front of static data makes nothing of it. */
#include "misuse.h"

static uint64_t forged[32] __attribute__((aligned(64)));

int main(void)
{
    forged[1] = 0x41;
    forged[9] = 0x41;
    announce(&forged[2]);
    free(&forged[2]);
    return survived();
}
