/* Does known work and stops, for the tests of the statistics file: leaves 1,000 blocks of 64 bytes
   and 3 of 1 MiB, then writes a line and waits for the end of its input. Calls that miss go on
   meanwhile, if the first argument says so. With the argument "rest" it leaves 40 MiB in blocks of
   1 KiB as well, and makes no call at all while it waits. With "free" it leaves 200 MiB, has freed
   100, and makes no call either. */
#include "check.h"

#include <poll.h>

static void *volatile kept[1003];

/* 200 MiB in large blocks stay; 100 MiB in blocks of 1,000 bytes go. */
static void free_small_ones(void)
{
    static char *small[100 << 10];
    for (unsigned index = 0; index < 200; index++) {
        kept[0] = malloc((size_t)1 << 20);
        check(kept[0] != NULL);
        memset(kept[0], 1, (size_t)1 << 20);
    }
    for (unsigned index = 0; index < 100 << 10; index++) {
        small[index] = malloc(1000);
        check(small[index] != NULL);
        memset(small[index], 1, 1000);
    }
    for (unsigned index = 0; index < 100 << 10; index++) free(small[index]);
}

int main(int argc, char **argv)
{
    bool goes_on = argc > 1 && strcmp(argv[1], "on") == 0;
    for (unsigned index = 0; index < 1000; index++) kept[index] = malloc(64);
    for (unsigned index = 0; index < 3; index++) kept[1000 + index] = malloc((size_t)1 << 20);
    const bool rests = argc > 1 && strcmp(argv[1], "rest") == 0;
    const bool frees = argc > 1 && strcmp(argv[1], "free") == 0;
    if (frees) free_small_ones();
    if (rests || frees) {
        for (unsigned index = 0; rests && index < 40 << 10; index++) kept[1000] = malloc(1024);
        check(write(STDOUT_FILENO, "ready\n", 6) == 6);
        char byte;
        while (read(STDIN_FILENO, &byte, 1) > 0)
            ;
        return 0;
    }
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    check(write(STDOUT_FILENO, "ready\n", 6) == 6);
    while (poll(&input, 1, 20) == 0)
        for (unsigned turn = 0; goes_on && turn < 20; turn++) free(malloc(200000));
    if (argc > 1 && strcmp(argv[1], "fork") == 0 && fork() == 0) kept[0] = malloc(64);
    return 0;
}
