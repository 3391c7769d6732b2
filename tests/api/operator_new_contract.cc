// Every form of operator new and delete, the new-handler loop, and exceptions through all of it.
#include "check.h"
#include "heap.h"

#include <errno.h>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

const std::size_t too_much = std::numeric_limits<std::size_t>::max() / 2 + 4096;
int handler_calls;

void *seen(void *ptr, std::size_t alignment, std::size_t size)
{
    ptr = hidden(ptr);
    check(ptr != nullptr && heap_is_aligned(ptr, alignment));
    heap_fill(ptr, size, 7);
    check(heap_holds(ptr, size, 7));
    return ptr;
}

void each_plain_form(std::size_t size)
{
    ::operator delete(seen(::operator new(size), 16, size));
    ::operator delete(seen(::operator new(size), 16, size), size);
    ::operator delete(seen(::operator new(size, std::nothrow), 16, size), std::nothrow);
    ::operator delete[](seen(::operator new[](size), 16, size));
    ::operator delete[](seen(::operator new[](size), 16, size), size);
    ::operator delete[](seen(::operator new[](size, std::nothrow), 16, size), std::nothrow);
}

void each_aligned_form(std::size_t size, std::size_t boundary)
{
    const std::align_val_t alignment{boundary};
    ::operator delete(seen(::operator new(size, alignment), boundary, size), alignment);
    ::operator delete(seen(::operator new(size, alignment), boundary, size), size, alignment);
    ::operator delete(seen(::operator new(size, alignment, std::nothrow), boundary, size),
                      alignment, std::nothrow);
    ::operator delete[](seen(::operator new[](size, alignment), boundary, size), alignment);
    ::operator delete[](seen(::operator new[](size, alignment), boundary, size), size, alignment);
    ::operator delete[](seen(::operator new[](size, alignment, std::nothrow), boundary, size),
                        alignment, std::nothrow);
}

template <typename Call> bool throws_bad_alloc(Call call)
{
    try {
        (void)hidden(call());
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

} // namespace

test(plain_forms_serve_every_size)
{
    for (std::size_t size = 0; size <= 3000000; size = size * 5 / 4 + 1) each_plain_form(size);
}

test(aligned_forms_serve_every_alignment)
{
    for (std::size_t boundary = 1; boundary <= 1 << 20; boundary *= 2) {
        each_aligned_form(0, boundary);
        each_aligned_form(1, boundary);
        each_aligned_form(100, boundary);
        each_aligned_form(70000, boundary);
    }
}

test(delete_of_null_does_nothing)
{
    ::operator delete(hidden(nullptr));
    ::operator delete[](hidden(nullptr));
    ::operator delete(hidden(nullptr), std::size_t{8});
    ::operator delete[](hidden(nullptr), std::size_t{8});
    ::operator delete(hidden(nullptr), std::nothrow);
    ::operator delete(hidden(nullptr), std::align_val_t{64});
    ::operator delete(hidden(nullptr), std::size_t{8}, std::align_val_t{64});
}

test(delete_leaves_errno_alone)
{
    void *block = hidden(::operator new(100000));
    errno = 77;
    ::operator delete(block);
    check_eq(errno, 77);
}

test(too_much_throws_bad_alloc)
{
    const std::size_t size = hidden_size(too_much);
    check(throws_bad_alloc([&] { return ::operator new(size); }));
    check(throws_bad_alloc([&] { return ::operator new[](size); }));
    check(throws_bad_alloc([&] { return ::operator new(size, std::align_val_t{64}); }));
    check(throws_bad_alloc([&] { return ::operator new[](size, std::align_val_t{4096}); }));
}

test(too_much_gives_null_to_the_nothrow_forms)
{
    const std::size_t size = hidden_size(too_much);
    check(hidden(::operator new(size, std::nothrow)) == nullptr);
    check(hidden(::operator new[](size, std::nothrow)) == nullptr);
    check(hidden(::operator new(size, std::align_val_t{64}, std::nothrow)) == nullptr);
    check(hidden(::operator new[](size, std::align_val_t{64}, std::nothrow)) == nullptr);
}

test(the_new_handler_is_called_until_it_gives_up)
{
    handler_calls = 0;
    std::set_new_handler([] {
        if (++handler_calls == 3) std::set_new_handler(nullptr);
    });
    check(throws_bad_alloc([] { return ::operator new(hidden_size(too_much)); }));
    check_eq(handler_calls, 3);
    check(std::get_new_handler() == nullptr);
}

test(the_new_handler_may_throw)
{
    std::set_new_handler([] { throw std::runtime_error("enough"); });
    bool caught = false;
    try {
        (void)hidden(::operator new(hidden_size(too_much), std::align_val_t{64}));
    } catch (const std::runtime_error &) {
        caught = true;
    } catch (const std::bad_alloc &) { // An older standard library may turn it into this.
    }
    std::set_new_handler(nullptr);
    check(caught);
}

test(a_handler_that_throws_bad_alloc_makes_nothrow_give_null)
{
    std::set_new_handler([] { throw std::bad_alloc(); });
    check(hidden(::operator new(hidden_size(too_much), std::nothrow)) == nullptr);
    check(hidden(::operator new[](hidden_size(too_much), std::nothrow)) == nullptr);
    std::set_new_handler(nullptr);
}

test(the_nothrow_form_calls_the_handler_too)
{
    handler_calls = 0;
    std::set_new_handler([] {
        if (++handler_calls == 2) std::set_new_handler(nullptr);
    });
    check(hidden(::operator new(hidden_size(too_much), std::nothrow)) == nullptr);
    check_eq(handler_calls, 2);
}

test(exceptions_unwind_through_constructors_and_free_what_they_built)
{
    struct fragile_t {
        std::string text;
        explicit fragile_t(int i) : text(100, 'x')
        {
            if (i == 7) throw std::runtime_error("seven");
        }
    };
    for (int round = 0; round < 2000; round++) {
        bool caught = false;
        try {
            std::vector<fragile_t> all;
            for (int i = 0; i < 10; i++) all.emplace_back(i);
        } catch (const std::runtime_error &error) {
            caught = std::string(error.what()) == "seven";
        }
        check(caught);
    }
}

test(a_vector_that_outgrows_everything_throws_and_the_heap_goes_on)
{
    for (int i = 0; i < 100; i++) {
        bool caught = false;
        try {
            std::vector<char> all(hidden_size(too_much - 8192));
            check(hidden(all.data()) == nullptr);
        } catch (const std::bad_alloc &) {
            caught = true;
        } catch (const std::length_error &) {
            caught = true;
        }
        check(caught);
        each_plain_form(100);
    }
}

check_main()
