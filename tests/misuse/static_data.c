/* A static variable is freed. */
#include "misuse.h"

static char data[64];

int main(void)
{
    announce(data);
    free(data);
    return survived();
}
