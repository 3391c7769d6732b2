/* misuse NAME: the misuse of that name in a fresh process, or in one that is WARM. */
#include "misuse.h"

static struct { const char *name; void (*run)(void); } cases[80];
static size_t count;

#ifdef WARM
/* The program as it is after a while: every bin has blocks and room. */
__attribute__((constructor)) static void warm_up(void)
{
    static void *blocks[24];
    for (size_t size = 16; size <= 32768; size += size < 512 ? 16 : size / 16) {
        for (int i = 0; i < 24; i++) blocks[i] = malloc(size);
        for (int i = 0; i < 24; i += 2) free(blocks[i]);
        for (int i = 1; i < 24; i += 2) free(blocks[i]);
        for (int i = 0; i < 12; i++) blocks[i] = malloc(size);
    }
}
#endif

void misuse_add(const char *name, void (*run)(void))
{
    cases[count].name = name;
    cases[count++].run = run;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < count && argc > 1; i++) {
        if (strcmp(cases[i].name, argv[1]) != 0) continue;
        cases[i].run();
        say("survived\n"); /* it was not stopped at once */
        malloc_trim(0);
        return 0;
    }
    return 2;
}
