/* include/hakmem.hpp: containers and memory resources take their memory from the heap they were
   given, and only from it; sizes that overflow are refused. Groups serve new and containers. */
#include "check.h"
#include "hakmem.hpp"

#include <list>
#include <map>
#include <string>
#include <vector>

#pragma weak hakmem_heap_new
#pragma weak hakmem_heap_destroy
#pragma weak hakmem_heap_aligned_alloc
#pragma weak hakmem_heap_of
#pragma weak hakmem_aligned_alloc_group

test(a_vector_stays_in_its_heap)
{
    hakmem::heap heap;
    std::vector<int, hakmem::allocator<int>> numbers(heap);
    for (int number = 0; number < 100000; number++) numbers.push_back(number);
    check(hakmem_heap_of(numbers.data()) == heap.get());
    for (int number = 0; number < 100000; number++) check_eq(numbers[number], number);
}

test(nodes_and_their_texts_stay_in_theirs)
{
    hakmem::heap heap;
    hakmem::resource memory(heap);
    std::pmr::map<int, std::pmr::string> names(&memory);
    for (int number = 0; number < 1000; number++)
        names.emplace(number, "a text that is too long to stand in the string itself");
    for (auto &entry : names) {
        check(hakmem_heap_of(entry.second.data()) == heap.get());
    }
}

test(allocators_are_equal_where_their_heap_is)
{
    hakmem::heap one, two;
    hakmem::allocator<int> a(one), b(one), c(two);
    hakmem::allocator<char> d(a);
    check(a == b && a != c && d == a);
    hakmem::resource e(one), f(one), g(two);
    check(e == f && e != g && !(e == *std::pmr::new_delete_resource()));
}

test(a_moved_list_takes_its_heap_along)
{
    hakmem::heap one, two;
    std::list<int, hakmem::allocator<int>> from(one), to(two);
    from.assign(100, 7);
    to = std::move(from);
    check_eq(to.size(), 100);
    check(to.get_allocator() == hakmem::allocator<int>(one));
}

test(alignments_hold)
{
    struct alignas(256) wide { char bytes[256]; };
    hakmem::heap heap;
    std::vector<wide, hakmem::allocator<wide>> list(heap);
    list.resize(10);
    check_eq(reinterpret_cast<uintptr_t>(list.data()) % 256, 0);
}

test(a_size_that_overflows_is_refused)
{
    hakmem::heap heap;
    hakmem::allocator<long> allocator(heap);
    bool was_refused = false;
    try {
        (void)allocator.allocate(SIZE_MAX / 4);
    } catch (const std::bad_array_new_length &) {
        was_refused = true;
    }
    check(was_refused);
    was_refused = false;
    try {
        (void)allocator.allocate(SIZE_MAX / 16);
    } catch (const std::bad_alloc &) {
        was_refused = true;
    }
    check(was_refused);
}

test(a_heap_that_was_moved_is_destroyed_once)
{
    hakmem::heap one;
    void *block = one.allocate(100);
    hakmem::heap two = std::move(one);
    check(hakmem_heap_of(block) == two.get());
    hakmem::heap three;
    three = std::move(two);
    check(hakmem_heap_of(block) == three.get());
}

check_main()

namespace {

struct alignas(128) wide_entry {
    explicit wide_entry(bool is_bad)
    {
        if (is_bad) throw 7;
    }
    char bytes[128] = {};
};

} // namespace

test(objects_and_containers_may_stand_in_a_group)
{
    auto *number = new (hakmem::in_group{2}) int(5);
    auto *numbers = new (hakmem::in_group{2}) int[100]();
    auto *wide = new (hakmem::in_group{2}) wide_entry(false);
    check(*number == 5 && numbers[99] == 0 && (uintptr_t)wide % 128 == 0);
    delete number;
    delete[] numbers;
    delete wide;
    std::map<int, int, std::less<>, hakmem::group_allocator<std::pair<const int, int>, 2>> index;
    for (int entry = 0; entry < 1000; entry++) index[entry] = entry * 2;
    check_eq(index[999], 1998);
    std::vector<int, hakmem::group_allocator<int, 1>> list(1000, 3), other = std::move(list);
    check(other.size() == 1000 && other[999] == 3);
    int caught = 0;
    try {
        delete new (hakmem::in_group{2}) wide_entry(true);
    } catch (int is) {
        caught = is;
    }
    check_eq(caught, 7);
}
