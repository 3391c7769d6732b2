/* Does known work and stops, for the tests of the statistics file: leaves 1,000 blocks of 64 bytes
   and 3 of 1 MiB, then writes a line and waits for the end of its input, without a call. With the
   argument "on" calls that miss go on meanwhile; with "rest" it leaves 40 MiB in blocks of 1 KiB as
   well; with "fork" a child allocates at the end. */
#include "check.h"

#include <poll.h>

static void *volatile kept[1003];

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    const bool goes_on = strcmp(what, "on") == 0;
    for (unsigned index = 0; index < 1000; index++) kept[index] = malloc(64);
    for (unsigned index = 0; index < 3; index++) kept[1000 + index] = malloc((size_t)1 << 20);
    for (unsigned index = 0; strcmp(what, "rest") == 0 && index < 40 << 10; index++)
        kept[1000] = malloc(1024);
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    check(write(STDOUT_FILENO, "ready\n", 6) == 6);
    while (poll(&input, 1, goes_on ? 20 : -1) == 0)
        for (unsigned turn = 0; turn < 20; turn++) free(malloc(200000));
    if (strcmp(what, "fork") == 0 && fork() == 0) kept[0] = malloc(64);
    return 0;
}
