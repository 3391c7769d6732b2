/* A process near its limit: little_room KIB. It may map so much more, which must do for a first
   block of 8 bytes. Where no further one can be had, none of 40,000 bytes can either. */
#include "api/heap.h"
#include "check.h"

#include <fcntl.h>
#include <sys/resource.h>

static size_t mapped_pages(void)
{
    char text[128];
    const int file = open("/proc/self/statm", O_RDONLY);
    const ssize_t length = read(file, text, sizeof text - 1);
    check(length > 0 && close(file) == 0);
    text[length] = '\0';
    return strtoul(text, NULL, 10);
}

int main(int argc, char **argv)
{
    check_eq(argc, 2);
    const size_t room = strtoul(argv[1], NULL, 10) * 1024;
    const size_t limit = mapped_pages() * (size_t)sysconf(_SC_PAGESIZE) + room;
    check_eq(setrlimit(RLIMIT_AS, &(struct rlimit){limit, limit}), 0);
    check(hidden(malloc(8)) != NULL);
    while (hidden(malloc(8)) != NULL) continue;
    check(hidden(malloc(40000)) == NULL);
    return 0;
}
