/* Does known work and stops, for the tests of the statistics file: leaves 1,000 blocks of 64 bytes
   and 3 of 1 MiB, then writes a line and waits for the end of its input. Calls that miss go on
   meanwhile, if the first argument says so. */
#include "check.h"

#include <poll.h>

static void *volatile kept[1003];

int main(int argc, char **argv)
{
    bool goes_on = argc > 1 && strcmp(argv[1], "on") == 0;
    for (unsigned index = 0; index < 1000; index++) kept[index] = malloc(64);
    for (unsigned index = 0; index < 3; index++) kept[1000 + index] = malloc((size_t)1 << 20);
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    check(write(STDOUT_FILENO, "ready\n", 6) == 6);
    while (poll(&input, 1, 20) == 0)
        for (unsigned turn = 0; goes_on && turn < 20; turn++) free(malloc(200000));
    if (argc > 1 && strcmp(argv[1], "fork") == 0 && fork() == 0) kept[0] = malloc(64);
    return 0;
}
