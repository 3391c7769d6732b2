/* A program that holds 60 MiB at most, in blocks of another size each time, all of them touched; it
   frees them all before the next phase, or all but one in 100. */
#include "limited.h"

enum { ROUNDS = 3, KEPT = 20000 };

static const size_t phase_bytes = 60 * MIB;

static void *kept[KEPT];
static size_t kept_count;

static void phase(size_t size, bool keeps_some)
{
    size_t count;
    link_t *link = fill(size, phase_bytes, &count);
    check(count * size >= phase_bytes);
    for (link_t *next; link != NULL; link = next, count--) {
        next = link->next;
        if (keeps_some && size <= 3000 && count % 100 == 0 && kept_count < KEPT)
            kept[kept_count++] = link;
        else
            free(link);
    }
}

int main(void)
{
    static const size_t sizes[] = {100,    300000, 20000,   6000000, 1000,
                                   100000, 16,     3000000, 9000,    30000000};
    for (unsigned round = 0; round < ROUNDS; round++)
        for (size_t index = 0; index < sizeof sizes / sizeof *sizes; index++)
            phase(sizes[index], round == 1);
    for (size_t index = 0; index < kept_count; index++) free(kept[index]);
    (void)printf("ok\n");
    return 0;
}
