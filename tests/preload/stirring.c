/* Misses all the time, for the tests of learning: takes more small blocks than bins and depots
   hold, gives them back, and so on until its input ends. Their contents stay whole meanwhile. With
   an argument a child of it does the same. */
#include "check.h"

#include <poll.h>
#include <sys/wait.h>

enum { BLOCKS = 20000, SIZES = 5 };
static const size_t sizes[SIZES] = {48, 200, 700, 2000, 9000};
static unsigned char *blocks[BLOCKS];

static void stir(unsigned char round)
{
    for (size_t index = 0; index < BLOCKS; index++) {
        size_t size = sizes[(index + round) % SIZES];
        blocks[index] = malloc(size);
        check(blocks[index] != NULL);
        blocks[index][0] = blocks[index][size - 1] = (unsigned char)(round + index);
    }
    for (size_t index = 0; index < BLOCKS; index++) {
        size_t size = sizes[(index + round) % SIZES];
        check_eq(blocks[index][0], (unsigned char)(round + index));
        check_eq(blocks[index][size - 1], (unsigned char)(round + index));
        free(blocks[index]);
    }
}

int main(int argc, char **argv)
{
    (void)argv;
    const pid_t child = argc > 1 ? fork() : 0;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    for (unsigned char round = 0; poll(&input, 1, 0) == 0; round++) stir(round);
    int status = 0;
    check(child <= 0 || (waitpid(child, &status, 0) == child && status == 0));
    return 0;
}
