// A new-handler that frees memory lets operator new succeed: under a limit on the address space.
#include "check.h"
#include "heap.h"

#include <new>
#include <sys/resource.h>

namespace {

const std::size_t reserve_size = std::size_t{256} << 20;
const std::size_t wanted_size = std::size_t{192} << 20;
void *reserve;
int handler_calls;

std::size_t address_space_bytes()
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    check(file != nullptr && fscanf(file, "%lu", &pages) == 1);
    (void)fclose(file);
    return pages * std::size_t(sysconf(_SC_PAGESIZE));
}

void give_up_the_reserve()
{
    handler_calls++;
    if (reserve == nullptr) throw std::bad_alloc();
    free(reserve);
    reserve = nullptr;
}

} // namespace

test(a_handler_that_frees_memory_lets_new_succeed)
{
    reserve = hidden(malloc(reserve_size));
    check(reserve != nullptr);
    free(hidden(malloc(100))); // Everything small is set up before the limit falls.
    const std::size_t allowed = address_space_bytes() + (std::size_t{64} << 20);
    const struct rlimit limit = {allowed, allowed};
    check_eq(setrlimit(RLIMIT_AS, &limit), 0);
    std::set_new_handler(give_up_the_reserve);
    char *block = static_cast<char *>(hidden(::operator new(wanted_size)));
    check(block != nullptr);
    check_eq(handler_calls, 1);
    block[0] = block[wanted_size - 1] = 1;
    ::operator delete(block);
    std::set_new_handler(nullptr);
}

check_main()
