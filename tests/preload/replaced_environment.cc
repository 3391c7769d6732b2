/* Replaces operator new and delete, and prints a variable of its environment. */
#include <cstdio>
#include <cstdlib>
#include <new>

void *operator new(std::size_t size)
{
    return std::malloc(size);
}

void operator delete(void *ptr) noexcept
{
    std::free(ptr);
}

int main()
{
    const char *value = std::getenv("THE_VARIABLE");
    delete new (std::nothrow) int;
    return std::puts(value != nullptr ? value : "nothing") < 0;
}
