/* Blocks of 48 bytes from three places and one of another size, for the tests of site rules. Prints
   for each place "C" if its blocks stand among malloc's, else the letter of the first place among
   whose blocks they stand. The places are the return addresses of the calls in the functions below.
   */
#include "check.h"
#include "weak.h"

#ifdef POLICY
HAKMEM_POLICY_NOTE(POLICY)
#endif

#define NOINLINE __attribute__((noinline))

/* What stands last in front of the thread pointer on x86-64: it must not be taken for a block. */
static _Thread_local uintptr_t words[8] = {1, 2, 3, 4, 5, 6, 7, 8};

static void *volatile kept;

NOINLINE void *by_malloc(void)
{
    kept = malloc(48);
    return kept;
}

NOINLINE void *by_calloc(void)
{
    kept = calloc(6, 8);
    return kept;
}

NOINLINE void *by_another(void)
{
    kept = malloc(48);
    return kept;
}

NOINLINE void *of_another_size(void)
{
    kept = malloc(200);
    return kept;
}

enum { TURNS = 1000, KINDS = 5, SITES = 4 };

static char *blocks[KINDS][TURNS]; /* the last: of the first place, grown */
static char *plain[KINDS][TURNS];  /* as large, from a place that no rule names */
static const size_t sizes[KINDS] = {48, 48, 48, 200, 480};

/* Do some of them stand in one unit of 8 KiB, and so in one slab? */
static bool share(char *const *some, char *const *others)
{
    for (unsigned left = 0; left < TURNS; left++)
        for (unsigned right = 0; right < TURNS; right++)
            if ((uintptr_t)some[left] >> 13 == (uintptr_t)others[right] >> 13) return true;
    return false;
}

static char letter(unsigned kind)
{
    unsigned first = kind < SITES ? 0 : kind; /* the others of that place were freed */
    if (share(blocks[kind], plain[kind])) return 'C';
    while (!share(blocks[first], blocks[kind])) first++;
    return (char)('a' + first);
}

int main(void)
{
    for (unsigned word = 0; word < 8; word++) check_eq(words[word], word + 1);
    for (unsigned turn = 0; turn < TURNS; turn++) {
        blocks[0][turn] = by_malloc();
        blocks[1][turn] = by_calloc();
        blocks[2][turn] = by_another();
        blocks[3][turn] = of_another_size();
        for (unsigned kind = 0; kind < KINDS; kind++) plain[kind][turn] = malloc(sizes[kind]);
        check(hakmem_heap_of(blocks[0][turn]) == NULL); /* the program has made none */
    }
    for (unsigned index = 0; index < 48; index++) check(blocks[1][0][index] == 0);
    for (unsigned kind = 0; kind < SITES; kind++) (void)putchar(letter(kind));
    for (unsigned turn = 0; turn < TURNS; turn++) blocks[4][turn] = realloc(blocks[0][turn], 480);
    (void)putchar(letter(4)); /* stays in its heap */
    for (unsigned turn = 0; turn < TURNS; turn++) {
        for (unsigned kind = 1; kind < KINDS; kind++) free(blocks[kind][turn]);
        for (unsigned kind = 0; kind < KINDS; kind++) free(plain[kind][turn]);
    }
    (void)puts("");
    return 0;
}
