/* Memory that was freed serves other sizes too: halves WAY PATTERN FIRST SECOND.
   WAY "as" or "data": the limit that 300 MiB are. Fills it with blocks of FIRST bytes, frees half
   of them, in turns (PATTERN "alternate") or the older ones ("older"), then fills it with blocks of
   SECOND bytes. Six tenths of what was freed must be had again. */
#include "limited.h"

static const size_t limit_bytes = (size_t)300 << 20;

int main(int argc, char **argv)
{
    check_eq(argc, 5);
    set_limit(strcmp(argv[1], "as") == 0 ? RLIMIT_AS : RLIMIT_DATA, limit_bytes);
    const bool alternates = strcmp(argv[2], "alternate") == 0;
    const size_t first = strtoull(argv[3], NULL, 10);
    const size_t second = strtoull(argv[4], NULL, 10);
    size_t count;
    link_t *link = fill(first, SIZE_MAX, &count);
    check(count * first > limit_bytes / 2);
    for (size_t index = 0; index < count; index++) {
        link_t *next = link->next;
        if (alternates ? index % 2 == 1 : index >= (count + 1) / 2) free(link);
        link = next;
    }
    size_t again;
    (void)fill(second, SIZE_MAX, &again);
    (void)printf("%zu MiB of %zu bytes, then %zu MiB of %zu bytes\n", count * first >> 20, first,
                 again * second >> 20, second);
    check(again * second >= count / 2 * first / 10 * 6);
    return 0;
}
