// Each form of operator new and delete, for the tests of traces. With REPLACED the program has a
// plain new and delete of its own, whose blocks nobody else may free.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

#ifdef REPLACED
alignas(16) static char pool[1 << 16];
static std::size_t used;

void *operator new(std::size_t size)
{
    if (size > sizeof pool - used) throw std::bad_alloc();
    void *block = pool + used;
    used += (size + 15) / 16 * 16;
    return block;
}

void operator delete(void *block) noexcept
{
    char *place = static_cast<char *>(block);
    if (block != nullptr && (place < pool || place >= pool + sizeof pool)) std::abort();
}
#endif

static bool has_handled;

static void handle()
{
    std::free(std::malloc(10));
    has_handled = true;
    std::set_new_handler(nullptr);
}

static void refuse(std::size_t size)
{
    bool has_thrown = false;
    std::set_new_handler(handle);
    try {
        ::operator delete[](::operator new[](size));
    } catch (const std::bad_alloc &) {
        has_thrown = true;
    }
    if (!has_thrown || ::operator new[](size, std::nothrow) != nullptr) std::exit(3);
#ifndef REPLACED
    if (!has_handled) std::exit(4);
#endif
}

int main()
{
    const std::align_val_t line{64};
    void *blocks[8];
    blocks[0] = ::operator new(1000);
    blocks[1] = ::operator new[](1001);
    blocks[2] = ::operator new(1002, std::nothrow);
    blocks[3] = ::operator new[](1003, std::nothrow);
    blocks[4] = ::operator new(1004, line);
    blocks[5] = ::operator new[](1005, line);
    blocks[6] = ::operator new(1006, line, std::nothrow);
    blocks[7] = ::operator new[](1007, line, std::nothrow);
    for (int form = 4; form < 8; form++)
        if (reinterpret_cast<std::size_t>(blocks[form]) % 64 != 0) return 1;
    ::operator delete(blocks[0]);
    ::operator delete[](blocks[1], std::size_t(1001));
    ::operator delete(blocks[2], std::nothrow);
    ::operator delete[](blocks[3], std::nothrow);
    ::operator delete(blocks[4], std::size_t(1004), line);
    ::operator delete[](blocks[5], line);
    ::operator delete(blocks[6], line, std::nothrow);
    ::operator delete[](blocks[7], std::size_t(1007), line);
    ::operator delete(::operator new(50), std::size_t(50));
    ::operator delete[](::operator new[](51), std::size_t(51));
    refuse(std::size_t(1) << 60);
    return 0;
}
