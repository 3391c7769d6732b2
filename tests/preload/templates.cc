// Allocates by containers of C++ from functions that are known, for tests of profiles and leaks.
#include <map>
#include <string>
#include <vector>

#define NOINLINE __attribute__((noinline))

using Index = std::map<std::string, std::vector<int>>;
static Index *volatile kept;

NOINLINE static void fill_index(Index &index)
{
    for (int number = 0; number < 200000; number++)
        index["some-longer-key-number-" + std::to_string(number)].push_back(number);
}

int main()
{
    kept = new Index;
    fill_index(*kept);
    return 0;
}
