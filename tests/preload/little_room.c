/* A process near its limit: little_room KIB. It may map so much more, which must do for a first
   block of 8 bytes. Where no further one can be had, none of 40,000 bytes can either. */
#include "limited.h"

int main(int argc, char **argv)
{
    check_eq(argc, 2);
    set_limit(RLIMIT_AS, address_space_bytes() + strtoul(argv[1], NULL, 10) * 1024);
    check(hidden(malloc(8)) != NULL);
    while (hidden(malloc(8)) != NULL) continue;
    check(hidden(malloc(40000)) == NULL);
    return 0;
}
