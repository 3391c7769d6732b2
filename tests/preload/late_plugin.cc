// A C++ plugin for a program without a C++ runtime: asks for too much and for a handler's help.
#include <cstddef>
#include <new>

static int calls;

extern "C" int plugin_is_refused_politely()
{
    volatile std::size_t too_much = static_cast<std::size_t>(-1) / 2 + 1;
    bool caught = false;
    std::set_new_handler([] {
        if (++calls == 2) std::set_new_handler(nullptr);
    });
    try {
        ::operator delete(::operator new(too_much));
    } catch (const std::bad_alloc &) {
        caught = true;
    }
    return caught && calls == 2 && ::operator new(too_much, std::nothrow) == nullptr;
}
