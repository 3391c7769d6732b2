// HAKMEM for C++17: heaps of the program's own, for containers and memory resources; and groups.
//
//   hakmem::heap request;                                   // all of it goes at once
//   std::vector<int, hakmem::allocator<int>> list(request);
//   hakmem::resource memory(request);
//   std::pmr::vector<std::pmr::string> names(&memory);
//
//   auto *entry = new (hakmem::in_group{2}) cache_entry;    // delete it like any other
//   std::map<int, int, std::less<>, hakmem::group_allocator<std::pair<const int, int>, 2>> index;
//
// Nothing of this is needed for operator new and delete, which the library replaces. All functions
// may be called from any thread. Containers must end before the heap that they allocate from.
// Without exceptions (-fno-exceptions) what would throw ends the program, by std::abort. Without
// -frtti a resource is equal to itself alone.
#ifndef HAKMEM_HPP
#define HAKMEM_HPP

#if __cplusplus < 201703L
#error "hakmem.hpp needs C++17: compile with -std=c++17 or later; hakmem.h takes any C++"
#else

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory_resource>
#include <new>
#include <stdlib.h> // aligned_alloc, free: those of the library
#include <utility>

#include "hakmem.h"

namespace hakmem {

namespace detail {

template <class Error>
[[noreturn]] inline void fail()
{
#ifdef __cpp_exceptions
    throw Error();
#else
    std::abort();
#endif
}

// A block of a group. Throws std::bad_alloc.
inline void *from_group(unsigned number, std::size_t size, std::size_t alignment)
{
    void *block = hakmem_aligned_alloc_group(number, alignment, size);
    if (block == nullptr)
        fail<std::bad_alloc>();
    return block;
}

} // namespace detail

// A heap that is destroyed with its owner: every block of it goes then, without a destructor.
class heap {
public:
    // Throws std::bad_alloc: no memory, or too many heaps.
    heap() : own(hakmem_heap_new())
    {
        if (own == nullptr)
            detail::fail<std::bad_alloc>();
    }

    heap(heap &&other) noexcept : own(std::exchange(other.own, nullptr)) {}

    heap &operator=(heap &&other) noexcept
    {
        std::swap(own, other.own);
        return *this;
    }

    ~heap() { hakmem_heap_destroy(own); }

    // At least `size` bytes at a multiple of `alignment`, a power of two. Throws std::bad_alloc.
    void *allocate(std::size_t size, std::size_t alignment = alignof(std::max_align_t))
    {
        void *block = hakmem_heap_aligned_alloc(own, alignment, size);
        if (block == nullptr)
            detail::fail<std::bad_alloc>();
        return block;
    }

    // Takes back a block of this heap, or of any other.
    static void deallocate(void *block) noexcept { free(block); }

    // What it has, in blocks and bytes.
    hakmem_heap_statistics_t statistics() const noexcept
    {
        hakmem_heap_statistics_t now{};
        hakmem_heap_get_statistics(own, &now);
        return now;
    }

    // For the functions of hakmem.h.
    hakmem_heap_t *get() const noexcept { return own; }

private:
    hakmem_heap_t *own;
};

// An allocator for containers, from a heap. Two are equal if their heap is the same.
template <class T>
class allocator {
public:
    using value_type = T;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;

    allocator(heap &from) noexcept : from(&from) {} // not explicit: a container takes the heap

    template <class U>
    allocator(const allocator<U> &other) noexcept : from(other.from)
    {
    }

    // Throws std::bad_alloc, or std::bad_array_new_length where the size overflows.
    T *allocate(std::size_t count)
    {
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
            detail::fail<std::bad_array_new_length>();
        return static_cast<T *>(from->allocate(count * sizeof(T), alignof(T)));
    }

    void deallocate(T *block, std::size_t) noexcept { heap::deallocate(block); }

    template <class U>
    bool operator==(const allocator<U> &other) const noexcept
    {
        return from == other.from;
    }

    template <class U>
    bool operator!=(const allocator<U> &other) const noexcept
    {
        return from != other.from;
    }

private:
    template <class U>
    friend class allocator;

    heap *from;
};

// A memory resource over a heap. Two are equal if their heap is the same.
class resource : public std::pmr::memory_resource {
public:
    explicit resource(heap &from) noexcept : from(&from) {}

private:
    void *do_allocate(std::size_t size, std::size_t alignment) override
    {
        return from->allocate(size, alignment);
    }

    void do_deallocate(void *block, std::size_t, std::size_t) override { heap::deallocate(block); }

    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
#ifdef __cpp_rtti
        const auto *same = dynamic_cast<const resource *>(&other);
        return same != nullptr && same->from == from;
#else
        return this == &other;
#endif
    }

    heap *from;
};

// Where an object made by new stands: among those of its group alone (hakmem_malloc_group).
struct in_group {
    unsigned number;
};

// An allocator for containers whose blocks stand in a group. All of one group are equal.
template <class T, unsigned Number>
class group_allocator {
public:
    using value_type = T;
    using is_always_equal = std::true_type;

    template <class U>
    struct rebind {
        using other = group_allocator<U, Number>;
    };

    group_allocator() noexcept = default;

    template <class U>
    group_allocator(const group_allocator<U, Number> &) noexcept
    {
    }

    // Throws std::bad_alloc, or std::bad_array_new_length where the size overflows.
    T *allocate(std::size_t count)
    {
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
            detail::fail<std::bad_array_new_length>();
        return static_cast<T *>(detail::from_group(Number, count * sizeof(T), alignof(T)));
    }

    void deallocate(T *block, std::size_t) noexcept { free(block); }

    template <class U>
    bool operator==(const group_allocator<U, Number> &) const noexcept
    {
        return true;
    }

    template <class U>
    bool operator!=(const group_allocator<U, Number> &) const noexcept
    {
        return false;
    }
};

} // namespace hakmem

// new (hakmem::in_group{2}) T: throws std::bad_alloc. The forms of delete serve constructors that
// throw; an object that was made is deleted like any other.
inline void *operator new(std::size_t size, hakmem::in_group group)
{
    return hakmem::detail::from_group(group.number, size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}

inline void *operator new[](std::size_t size, hakmem::in_group group)
{
    return hakmem::detail::from_group(group.number, size, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}

inline void *operator new(std::size_t size, std::align_val_t alignment, hakmem::in_group group)
{
    return hakmem::detail::from_group(group.number, size, static_cast<std::size_t>(alignment));
}

inline void *operator new[](std::size_t size, std::align_val_t alignment, hakmem::in_group group)
{
    return hakmem::detail::from_group(group.number, size, static_cast<std::size_t>(alignment));
}

inline void operator delete(void *block, hakmem::in_group) noexcept { free(block); }
inline void operator delete[](void *block, hakmem::in_group) noexcept { free(block); }
inline void operator delete(void *block, std::align_val_t, hakmem::in_group) noexcept
{
    free(block);
}
inline void operator delete[](void *block, std::align_val_t, hakmem::in_group) noexcept
{
    free(block);
}

#endif // C++17

#endif
