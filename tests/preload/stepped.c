/* A program with one thread, to be single-stepped between its two traps: allocates and frees. */
#include "stress/payload.h"

#include <signal.h>

static void churn(size_t count)
{
    static void *blocks[64];
    uint64_t random = 7;
    for (size_t i = 0; i < count; i++) {
        void **slot = &blocks[random_step(&random) % 64];
        free(*slot);
        *slot = malloc(random_size(&random, i % 128 == 0 ? 18 : 12));
    }
    for (size_t i = 0; i < 200; i++) free(malloc(i * 16));
    for (size_t i = 0; i < 64; i++) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
}

int main(void)
{
    churn(2000); /* The first calls of a process may do more. */
    __asm__ volatile("int3");
    churn(1000);
    __asm__ volatile("int3");
    return 0;
}
