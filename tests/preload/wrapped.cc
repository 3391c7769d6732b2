// Functions that allocate for others, for the tests of sites with callers. Each is called by two
// functions of its own, NAME_stays and NAME_goes. Prints for each, in order, "A" if the blocks of
// the first stand apart from those of the second, and else "C".
#include <alloca.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

#define NOINLINE __attribute__((noinline, noclone, noipa))

namespace {

constexpr std::size_t turns = 600, size = 512;

void *volatile kept;
volatile std::size_t used = 1;

} // namespace

#define WRAPPER(name, attributes, call)                                                            \
    extern "C" NOINLINE attributes void *name##_wrapper()                                          \
    {                                                                                              \
        void *block = call;                                                                        \
        kept = block;                                                                              \
        return block;                                                                              \
    }                                                                                              \
    extern "C" NOINLINE void *name##_stays()                                                       \
    {                                                                                              \
        void *block = name##_wrapper();                                                            \
        kept = block;                                                                              \
        return block;                                                                              \
    }                                                                                              \
    extern "C" NOINLINE void *name##_goes()                                                        \
    {                                                                                              \
        void *block = name##_wrapper();                                                            \
        kept = block;                                                                              \
        return block;                                                                              \
    }

// As a function that keeps so much on the stack.
template <std::size_t bytes> static inline __attribute__((always_inline)) void *with_array()
{
    volatile char array[bytes];
    array[used] = 1;
    void *block = malloc(size);
    used = array[used];
    return block;
}

static inline __attribute__((always_inline)) void *with_alloca()
{
    static std::size_t turn;
    auto *array = static_cast<volatile char *>(alloca(16 + turn++ % 8 * 32));
    array[0] = 1;
    return malloc(size);
}

extern "C" NOINLINE void *inner_wrapper()
{
    void *block = malloc(size);
    kept = block;
    return block;
}

WRAPPER(plain, , malloc(size))
WRAPPER(zeroed, , calloc(2, size / 2))
WRAPPER(made, , operator new(size))
WRAPPER(array, , operator new[](size))
WRAPPER(nothrow, , operator new(size, std::nothrow))
WRAPPER(framed, __attribute__((optimize("no-omit-frame-pointer"))), malloc(size))
WRAPPER(deep, , inner_wrapper())
WRAPPER(padded, , with_array<600>())
WRAPPER(far, , with_array<2000>())
WRAPPER(varying, , with_alloca())

namespace {

struct kind {
    void *(*stays)();
    void *(*goes)();
};

#define KIND(name) {name##_stays, name##_goes}
const kind kinds[] = {KIND(plain),  KIND(zeroed), KIND(made),   KIND(array), KIND(nothrow),
                      KIND(framed), KIND(deep),   KIND(padded), KIND(far),   KIND(varying)};

// Do some of them stand in one unit of 8 KiB, and so in one slab?
bool share(void *const *some, void *const *others)
{
    for (std::size_t left = 0; left < turns; left++)
        for (std::size_t right = 0; right < turns; right++)
            if (reinterpret_cast<std::uintptr_t>(some[left]) >> 13 ==
                reinterpret_cast<std::uintptr_t>(others[right]) >> 13)
                return true;
    return false;
}

void run_here();

// In the middle of a page: a caller whose return address is on another page is not known.
void run()
{
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    auto *pad = static_cast<volatile char *>(alloca((here & 4095) + 2048 + sizeof(void *) * 4));
    pad[0] = 1;
    run_here();
}

NOINLINE void run_here()
{
    for (const kind &each : kinds) {
        static void *stays[turns], *goes[turns]; // not on the stack, whose page counts
        for (std::size_t turn = 0; turn < turns; turn++) {
            stays[turn] = each.stays();
            goes[turn] = each.goes();
        }
        (void)std::putchar(share(stays, goes) ? 'C' : 'A');
        for (std::size_t turn = 0; turn < turns; turn++) {
            free(stays[turn]);
            free(goes[turn]);
        }
    }
    (void)std::puts("");
}

} // namespace

int main()
{
    run();
    std::thread(run).join(); // near the end of a stack
    return 0;
}
