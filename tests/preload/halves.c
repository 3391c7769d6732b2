/* Memory that was freed serves other sizes too: halves WAY PATTERN FIRST SECOND.
   WAY "as" or "data": the limit that 300 MiB are. Fills it with blocks of FIRST bytes, frees half
   of them, in turns (PATTERN "alternate") or the older ones ("older"), then fills it with blocks of
   SECOND bytes. Six tenths of what was freed must be had again. */
#include "api/heap.h"
#include "check.h"

#include <errno.h>
#include <sys/resource.h>

typedef struct link {
    struct link *next;
    struct link *previous;
} link_t;

static const size_t limit_bytes = (size_t)300 << 20;

/* Blocks until there are no more, the youngest first; `oldest` too. */
static link_t *fill(size_t size, link_t **oldest, size_t *count)
{
    link_t *youngest = NULL;
    *count = 0;
    for (;; (*count)++) {
        errno = 0;
        link_t *link = hidden(malloc(size));
        if (link == NULL) break;
        memset(link, 0x5a, size);
        *link = (link_t){youngest, NULL};
        if (youngest != NULL) youngest->previous = link;
        else *oldest = link;
        youngest = link;
    }
    check_eq(errno, ENOMEM);
    return youngest;
}

int main(int argc, char **argv)
{
    check_eq(argc, 5);
    const struct rlimit limit = {limit_bytes, limit_bytes};
    check_eq(setrlimit(strcmp(argv[1], "as") == 0 ? RLIMIT_AS : RLIMIT_DATA, &limit), 0);
    const bool alternates = strcmp(argv[2], "alternate") == 0;
    const size_t first = strtoull(argv[3], NULL, 10);
    const size_t second = strtoull(argv[4], NULL, 10);
    size_t count;
    link_t *oldest = NULL;
    (void)fill(first, &oldest, &count);
    check(count * first > limit_bytes / 2);
    link_t *link = oldest;
    for (size_t index = 0; index < count / 2; index++) {
        link_t *next = link->previous;
        free(link);
        link = alternates ? next->previous : next;
    }
    size_t again;
    (void)fill(second, &oldest, &again);
    (void)printf("%zu MiB of %zu bytes, then %zu MiB of %zu bytes\n", count * first >> 20, first,
                 again * second >> 20, second);
    check(again * second >= count / 2 * first / 10 * 6);
    return 0;
}
