/* For instructions.py: so many rounds of calls of one kind. pairs KIND ROUNDS */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static void malloc_free(long rounds)
{
    for (; rounds != 0; rounds--)
        free(malloc(40));
}

static void calloc_free(long rounds)
{
    for (; rounds != 0; rounds--)
        free(calloc(1, 40));
}

/* As Lua asks for all of its blocks. */
static void realloc_null_free(long rounds)
{
    for (; rounds != 0; rounds--)
        free(realloc(NULL, 40));
}

static void realloc_in_place(long rounds)
{
    void *block = malloc(40);
    for (; rounds != 0; rounds--)
        block = realloc(block, 33 + ((size_t)rounds & 7));
    free(block);
}

static void malloc_realloc_up_free(long rounds)
{
    for (; rounds != 0; rounds--)
        free(realloc(malloc(40), 72));
}

/* As buffers for direct input and output, and pools of pages, are asked for. */
static void aligned_free(long rounds, size_t alignment)
{
    for (; rounds != 0; rounds--)
        free(memalign(alignment, alignment));
}

static void aligned_4096_free(long rounds)
{
    aligned_free(rounds, 4096);
}

static void aligned_16384_free(long rounds)
{
    aligned_free(rounds, 16384);
}

static void usable_size(long rounds)
{
    void *block = malloc(40);
    for (; rounds != 0; rounds--)
        (void)malloc_usable_size(block);
    free(block);
}

static const struct {
    const char *name;
    void (*run)(long rounds);
} kinds[] = {
    {"malloc_free", malloc_free},
    {"calloc_free", calloc_free},
    {"realloc_null_free", realloc_null_free},
    {"realloc_in_place", realloc_in_place},
    {"malloc_realloc_up_free", malloc_realloc_up_free},
    {"aligned_4096_free", aligned_4096_free},
    {"aligned_16384_free", aligned_16384_free},
    {"usable_size", usable_size},
};

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    for (size_t index = 0; index < sizeof kinds / sizeof kinds[0]; index++)
        if (strcmp(kinds[index].name, words[1]) == 0) {
            kinds[index].run(atol(words[2]));
            return 0;
        }
    return 2;
}
