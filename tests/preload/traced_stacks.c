/* Blocks of two callers that ask for memory by the same function, for the tests of traces. */
#include <stdlib.h>

enum { COUNT = 64 };

static void *volatile kept[COUNT];

#define NOT_INLINED __attribute__((noinline))

NOT_INLINED static void *wrapped(size_t size)
{
    void *block = malloc(size);
    kept[0] = block;
    return block;
}

NOT_INLINED static void one(int number)
{
    kept[number] = wrapped(3000);
}

NOT_INLINED static void two(int number)
{
    kept[COUNT - 1 - number] = wrapped(3000); /* unlike one(), or both would be one function */
}

int main(void)
{
    for (int number = 0; number < COUNT; number++) {
        if (number % 2 == 0)
            two(number);
        else
            one(number);
    }
    return 0;
}
