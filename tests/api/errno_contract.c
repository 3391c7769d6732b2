/* errno: success and free leave it alone, failure sets it, in every function of the family. */
#include "check.h"
#include "heap.h"

#include <errno.h>
#include <sys/sysinfo.h>

enum { UNTOUCHED = 77 };
static const size_t sizes[] = {1, 100, 1024, 5000, 32768, 40000, 1 << 20, 20 << 20};
enum { SIZE_COUNT = sizeof sizes / sizeof sizes[0] };

static void *failed(void *ptr)
{
    check(ptr == NULL);
    check_eq(errno, ENOMEM);
    errno = 0;
    return ptr;
}

test(free_never_touches_errno)
{
    enum { COUNT = 300 };
    static void *blocks[COUNT];
    for (size_t s = 0; s < SIZE_COUNT; s++) {
        const size_t count = sizes[s] > 100000 ? 10 : COUNT;
        for (size_t i = 0; i < count; i++) {
            blocks[i] = hidden(malloc(sizes[s]));
            check(blocks[i] != NULL);
            memset(blocks[i], 1, sizes[s]);
        }
        for (size_t i = 0; i < count; i++) {
            errno = UNTOUCHED;
            free(blocks[i]);
            check_eq(errno, UNTOUCHED);
        }
    }
}

test(success_never_touches_errno)
{
    for (size_t s = 0; s < SIZE_COUNT; s++) {
        errno = UNTOUCHED;
        void *block = hidden(malloc(sizes[s]));
        check_eq(errno, UNTOUCHED);
        block = hidden(realloc(block, sizes[s] * 2));
        check_eq(errno, UNTOUCHED);
        void *zeroed = hidden(calloc(sizes[s], 2));
        check_eq(errno, UNTOUCHED);
        void *aligned = hidden(memalign(4096, sizes[s]));
        check_eq(errno, UNTOUCHED);
        void *placed = NULL;
        check_eq(posix_memalign(&placed, hidden_size(256), sizes[s]), 0);
        check_eq(posix_memalign(&placed, hidden_size(24), sizes[s]), EINVAL);
        (void)malloc_usable_size(block);
        check_eq(errno, UNTOUCHED);
        free(hidden(placed));
        free(block);
        free(zeroed);
        free(aligned);
    }
}

test(too_much_is_refused_with_enomem_by_all)
{
    static const size_t absurd[] = {SIZE_MAX,         SIZE_MAX - 1,
                                    SIZE_MAX - 4096,  SIZE_MAX - ((size_t)1 << 32),
                                    SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 2};
    void *block = hidden(malloc(10));
    errno = 0;
    for (size_t i = 0; i < sizeof absurd / sizeof absurd[0]; i++) {
        const size_t size = hidden_size(absurd[i]);
        (void)failed(hidden(malloc(size)));
        (void)failed(hidden(calloc(1, size)));
        (void)failed(hidden(calloc(size, 1)));
        (void)failed(hidden(realloc(hidden(NULL), size)));
        (void)failed(hidden(realloc(hidden(block), size)));
        (void)failed(hidden(reallocarray(hidden(NULL), size, 1)));
        (void)failed(hidden(reallocarray(hidden(block), 1, size)));
        (void)failed(hidden(memalign(64, size)));
        (void)failed(hidden(memalign(65536, size)));
        (void)failed(hidden(aligned_alloc(16, size)));
        (void)failed(hidden(aligned_alloc(4096, size)));
        (void)failed(hidden(valloc(size)));
        (void)failed(hidden(pvalloc(size)));
        void *aligned = NULL;
        check_eq(posix_memalign(&aligned, hidden_size(64), size), ENOMEM);
        (void)failed(hidden(aligned)); /* glibc sets errno here too, and so do we */
    }
    free(block);
}

test(products_that_wrap_are_refused_with_enomem)
{
    static const size_t factors[][2] = {{(size_t)1 << 33, (size_t)1 << 33},
                                        {(size_t)1 << 32, (size_t)1 << 32},
                                        {SIZE_MAX / 2 + 1, 2},
                                        {SIZE_MAX / 16 + 2, 16},
                                        {SIZE_MAX, SIZE_MAX}};
    void *block = hidden(malloc(10));
    errno = 0;
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
        const size_t a = hidden_size(factors[i][0]);
        const size_t b = hidden_size(factors[i][1]);
        (void)failed(hidden(calloc(a, b)));
        (void)failed(hidden(calloc(b, a)));
        (void)failed(hidden(reallocarray(hidden(NULL), a, b)));
        (void)failed(hidden(reallocarray(hidden(block), b, a)));
    }
    free(block);
}

/* Whether the kernel weighs each request against the memory it has; with 1 it grants anything. */
static bool kernel_weighs_requests(void)
{
    FILE *file = fopen("/proc/sys/vm/overcommit_memory", "r");
    if (file == NULL) return false;
    const int mode = fgetc(file);
    (void)fclose(file);
    return mode == '0' || mode == '2';
}

test(what_the_machine_cannot_hold_is_refused_with_enomem)
{
    struct sysinfo machine;
    check_eq(sysinfo(&machine), 0);
    const size_t memory = (size_t)(machine.totalram + machine.totalswap) * machine.mem_unit;
    errno = 0;
    (void)failed(hidden(malloc(hidden_size((size_t)1 << 62))));
    (void)failed(hidden(calloc(1, hidden_size((size_t)1 << 62))));
    (void)failed(hidden(memalign(4096, hidden_size((size_t)1 << 62))));
    if (kernel_weighs_requests()) (void)failed(hidden(malloc(hidden_size(memory * 2))));
}

test(work_goes_on_after_refusals)
{
    for (int i = 0; i < 100; i++) check(hidden(malloc(hidden_size(SIZE_MAX - 100))) == NULL);
    for (size_t s = 0; s < SIZE_COUNT; s++) {
        void *block = hidden(malloc(sizes[s]));
        check(block != NULL);
        free(block);
    }
}

check_main()
