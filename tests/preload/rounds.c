/* Uses 300 MiB in three rounds and rests, so that the library keeps them. Then each letter that the
   program reads has it do something. f: it forks a child, which rests; g: so, and the child has
   rounds of its own; u: it becomes another user; s: it says how many signals came. */
#include "check.h"

#include <errno.h>
#include <signal.h>

enum { BLOCK_COUNT = 300 * 16, BLOCK_SIZE = 65536, NOBODY = 65534 };

static volatile sig_atomic_t signals;

static void note(int number)
{
    (void)number;
    check_eq(gettid(), getpid());
    signals++;
}

static void work(void)
{
    static char *blocks[BLOCK_COUNT];
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned at = 0; at < BLOCK_COUNT; at++)
            memset(blocks[at] = malloc(BLOCK_SIZE), 1, BLOCK_SIZE);
        for (unsigned at = 0; at < BLOCK_COUNT; at++) free(blocks[at]);
    }
}

static void say(intmax_t number)
{
    char text[32];
    int length = snprintf(text, sizeof text, "%jd\n", number);
    check_eq(write(1, text, (size_t)length), length);
}

static void fork_and_rest(char letter)
{
    pid_t child = fork();
    check(child >= 0);
    if (child != 0) return;
    if (letter == 'g') work();
    say(getpid());
}

int main(void)
{
    char letter;
    ssize_t count;
    struct sigaction action = {.sa_handler = note};
    check_eq(sigaction(SIGUSR1, &action, NULL), 0);
    work();
    say(getpid());
    while ((count = read(0, &letter, 1)) != 0) {
        if (count < 0) {
            check_eq(errno, EINTR);
        } else if (letter == 's') {
            say(signals);
        } else if (letter == 'u') {
            check_eq(setresuid(NOBODY, NOBODY, NOBODY), 0);
            say(0);
        } else {
            fork_and_rest(letter);
        }
    }
    return 0;
}
