/* Does known work and stops, for the tests of the statistics file: leaves 1,000 blocks of 64 bytes
   and 3 of 1 MiB, then writes a line and waits for the end of its input. Calls that miss go on
   meanwhile, if the first argument says so. With the argument "rest" it leaves 40 MiB in blocks of
   1 KiB as well, and makes no call at all while it waits. */
#include "check.h"

#include <poll.h>

static void *volatile kept[1003];

int main(int argc, char **argv)
{
    bool goes_on = argc > 1 && strcmp(argv[1], "on") == 0;
    for (unsigned index = 0; index < 1000; index++) kept[index] = malloc(64);
    for (unsigned index = 0; index < 3; index++) kept[1000 + index] = malloc((size_t)1 << 20);
    if (argc > 1 && strcmp(argv[1], "rest") == 0) {
        for (unsigned index = 0; index < 40 << 10; index++) kept[1000] = malloc(1024);
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
