// Throws and catches, so that the C++ runtime and its pool for exceptions are there.
#include <cstdio>
#include <stdexcept>

int main()
{
    try {
        throw std::runtime_error("caught");
    } catch (const std::exception &error) {
        std::puts(error.what());
    }
    return 0;
}
