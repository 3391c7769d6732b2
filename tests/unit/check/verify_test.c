/* thread_cache_verify: wrong frees that still lie in the thread's cache are named, right ones are
 * not. */
#include "base/bits.h"
#include "unit/cached.h"

enum { CLASS = 6, COUNT = 400 };

static void *blocks[COUNT];

static void fill_cache(void)
{
    initialise();
    for (unsigned index = 0; index < COUNT; index++)
        blocks[index] = cached_alloc(CLASS);
    for (unsigned index = 0; index < COUNT; index++)
        cached_free(CLASS, blocks[index]);
    check(thread_cache_own->spares[CLASS]->count > 0 && bin_count(&thread_cache_own->bins[CLASS]));
}

fresh_test(a_cache_of_right_frees_passes)
{
    fill_cache();
    thread_cache_verify();
}

lawful_test(a_thread_without_a_cache_passes)
{
    thread_cache_verify();
}

static void verify_twice_in_bin(void)
{
    fill_cache();
    bin_t *bin = &thread_cache_own->bins[CLASS];
    bin->top[-3] = bin->top[-1];
    thread_cache_verify();
}

static void verify_in_bin_and_spare(void)
{
    fill_cache();
    thread_cache_own->spares[CLASS]->slots[0] = thread_cache_own->bins[CLASS].top[-1];
    thread_cache_verify();
}

static void verify_inside(void)
{
    fill_cache();
    void **top = thread_cache_own->bins[CLASS].top;
    top[-2] = (char *)top[-2] + 16;
    thread_cache_verify();
}

/* As many in the bin as in the spare. */
static void verify_twice_in_equal_halves(void)
{
    fill_cache();
    bin_t *bin = &thread_cache_own->bins[CLASS];
    magazine_t *spare = thread_cache_own->spares[CLASS];
    spare->count = smaller_of(spare->count, bin_count(bin));
    bin->top -= bin_count(bin) - spare->count;
    spare->slots[0] = bin->top[-1];
    thread_cache_verify();
}

static void verify_of_another_class(void)
{
    fill_cache();
    thread_cache_own->bins[CLASS].top[-2] = cached_alloc(CLASS + 1); /* the program has it */
    thread_cache_verify();
}

static void verify_free_in_slab(void)
{
    initialise();
    void *two[2];
    check_eq(central_list_take(CLASS, two + 2, 2), 2);
    thread_cache_t *cache = thread_cache_provide();
    cached_free(CLASS, cached_alloc(CLASS));
    cache->bins[CLASS].top[-1] = two[0];
    thread_cache_verify(); /* with the program as far as the slab knows: passes */
    central_list_give(CLASS, two, 1);
    thread_cache_verify();
}

static void check_named(void (*misuse)(void), const char *text)
{
    char words[256];
    check_eq(fresh_status(misuse, words, sizeof words), FAKE_ABORT_STATUS);
    check(strstr(words, text) != NULL);
}

test(wrong_frees_are_named)
{
    check_named(verify_twice_in_bin, "hakmem: double free of 0x");
    check_named(verify_in_bin_and_spare, "hakmem: double free of 0x");
    check_named(verify_twice_in_equal_halves, "hakmem: double free of 0x");
    check_named(verify_of_another_class, "hakmem: double free of 0x");
    check_named(verify_inside, "which points inside a block of 96 bytes");
    check_named(verify_free_in_slab, "hakmem: double free of 0x");
}

check_main()
