// Containers whose memory goes at once.
//
//   c++ -std=c++17 containers.cpp $(pkg-config --cflags --libs hakmem) -o containers && ./containers
#include <hakmem.hpp>

#include <iostream>
#include <map>
#include <string>
#include <vector>

int main()
{
    hakmem::heap request;

    std::vector<int, hakmem::allocator<int>> numbers(request);
    for (int number = 0; number < 1000; number++)
        numbers.push_back(number * number);

    hakmem::resource memory(request);
    std::pmr::map<int, std::pmr::string> names(&memory);
    for (int number : numbers)
        names.emplace(number, "the square of something, in a text that is not short");

    std::cout << names.size() << " names, the last is of " << names.rbegin()->first << "\n";
    return hakmem_heap_of(numbers.data()) == request.get() ? 0 : 1;
}
