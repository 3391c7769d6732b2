// All twenty forms of operator new and delete, as a program may replace them. test_operators.py
// hides some in the object file, so that a program or library has the others. Each tells
// replaced_main.cc that it was called. Its block lies `replaced_header` bytes behind one of malloc,
// or where its alignment puts it; so a form that does not belong to it frees an interior pointer.
#include <cstddef>
#include <cstdlib>
#include <new>

extern "C" {
extern std::size_t replaced_header;
extern int replaced_refusal; // 1: throw std::bad_alloc, 2: throw something else
void replaced_seen(const char *form);
void replaced_made(void *block, void *whole);
void *replaced_whole(void *block); // the block itself if no form here has made it
}

namespace {

void *make(const char *form, std::size_t size, std::size_t alignment, bool may_throw)
{
    replaced_seen(form);
    if (replaced_refusal == 2 && may_throw) throw 7;
    if (replaced_refusal != 0 && may_throw) throw std::bad_alloc();
    if (replaced_refusal != 0) return nullptr;
    const std::size_t boundary = alignment < 16 ? 16 : alignment;
    const std::size_t distance =
        replaced_header == 0 ? 0 : (replaced_header + boundary - 1) / boundary * boundary;
    void *whole = nullptr;
    if (posix_memalign(&whole, boundary, size + distance) != 0) std::abort();
    void *block = static_cast<char *>(whole) + distance;
    replaced_made(block, whole);
    return block;
}

void take(const char *form, void *block)
{
    replaced_seen(form);
    if (block != nullptr) std::free(replaced_whole(block));
}

using size_type = std::size_t;
using align_type = std::align_val_t;
using nothrow_type = const std::nothrow_t &;

std::size_t bytes(align_type alignment) { return static_cast<std::size_t>(alignment); }

} // namespace

void *operator new(size_type n) { return make("new", n, 0, true); }
void *operator new[](size_type n) { return make("new[]", n, 0, true); }
void *operator new(size_type n, align_type a) { return make("new-a", n, bytes(a), true); }
void *operator new[](size_type n, align_type a) { return make("new[]-a", n, bytes(a), true); }
void *operator new(size_type n, nothrow_type) noexcept { return make("new-n", n, 0, false); }
void *operator new[](size_type n, nothrow_type) noexcept { return make("new[]-n", n, 0, false); }
void *operator new(size_type n, align_type a, nothrow_type) noexcept
{
    return make("new-a-n", n, bytes(a), false);
}
void *operator new[](size_type n, align_type a, nothrow_type) noexcept
{
    return make("new[]-a-n", n, bytes(a), false);
}

void operator delete(void *block) noexcept { take("delete", block); }
void operator delete[](void *block) noexcept { take("delete[]", block); }
void operator delete(void *block, align_type) noexcept { take("delete-a", block); }
void operator delete[](void *block, align_type) noexcept { take("delete[]-a", block); }
void operator delete(void *block, size_type) noexcept { take("delete-s", block); }
void operator delete[](void *block, size_type) noexcept { take("delete[]-s", block); }
void operator delete(void *block, size_type, align_type) noexcept { take("delete-s-a", block); }
void operator delete[](void *block, size_type, align_type) noexcept { take("delete[]-s-a", block); }
void operator delete(void *block, nothrow_type) noexcept { take("delete-n", block); }
void operator delete[](void *block, nothrow_type) noexcept { take("delete[]-n", block); }
void operator delete(void *block, align_type, nothrow_type) noexcept { take("delete-a-n", block); }
void operator delete[](void *block, align_type, nothrow_type) noexcept
{
    take("delete[]-a-n", block);
}
