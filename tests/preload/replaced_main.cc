// Calls every form of operator new with every form of operator delete that goes with it, and prints
// which forms of replaced.cc saw the calls. `replaced_main HEADER`: the length of their headers.
#include "api/heap.h"
#include "check.h"

#include <cstdio>
#include <initializer_list>
#include <new>

extern "C" {
std::size_t replaced_header;
int replaced_refusal;
void replaced_seen(const char *form);
void replaced_made(void *block, void *whole);
void *replaced_whole(void *block);
}

namespace {

const std::align_val_t alignment{64};
void *made_block;
void *made_whole;

using make_t = void *(*)(std::size_t);
using take_t = void (*)(void *, std::size_t);

struct maker_t {
    const char *name;
    make_t make;
};

struct taker_t {
    const char *name;
    take_t take;
};

const maker_t makers[4][2] = {
    {{"new", [](std::size_t n) { return ::operator new(n); }},
     {"new-n", [](std::size_t n) { return ::operator new(n, std::nothrow); }}},
    {{"new[]", [](std::size_t n) { return ::operator new[](n); }},
     {"new[]-n", [](std::size_t n) { return ::operator new[](n, std::nothrow); }}},
    {{"new-a", [](std::size_t n) { return ::operator new(n, alignment); }},
     {"new-a-n", [](std::size_t n) { return ::operator new(n, alignment, std::nothrow); }}},
    {{"new[]-a", [](std::size_t n) { return ::operator new[](n, alignment); }},
     {"new[]-a-n", [](std::size_t n) { return ::operator new[](n, alignment, std::nothrow); }}},
};

const taker_t takers[4][3] = {
    {{"delete", [](void *p, std::size_t) { ::operator delete(p); }},
     {"delete-s", [](void *p, std::size_t n) { ::operator delete(p, n); }},
     {"delete-n", [](void *p, std::size_t) { ::operator delete(p, std::nothrow); }}},
    {{"delete[]", [](void *p, std::size_t) { ::operator delete[](p); }},
     {"delete[]-s", [](void *p, std::size_t n) { ::operator delete[](p, n); }},
     {"delete[]-n", [](void *p, std::size_t) { ::operator delete[](p, std::nothrow); }}},
    {{"delete-a", [](void *p, std::size_t) { ::operator delete(p, alignment); }},
     {"delete-s-a", [](void *p, std::size_t n) { ::operator delete(p, n, alignment); }},
     {"delete-a-n", [](void *p, std::size_t) { ::operator delete(p, alignment, std::nothrow); }}},
    {{"delete[]-a", [](void *p, std::size_t) { ::operator delete[](p, alignment); }},
     {"delete[]-s-a", [](void *p, std::size_t n) { ::operator delete[](p, n, alignment); }},
     {"delete[]-a-n",
      [](void *p, std::size_t) { ::operator delete[](p, alignment, std::nothrow); }}},
};

const char *answer_to(const maker_t &maker, const taker_t &taker)
{
    try {
        void *block = hidden(maker.make(40));
        if (block == nullptr) return "null";
        taker.take(block, 40);
    } catch (const std::bad_alloc &) {
        return "bad_alloc";
    } catch (int) {
        return "7";
    }
    return "a block";
}

void each_pair(std::size_t size)
{
    for (int kind = 0; kind < 4; kind++)
        for (const maker_t &maker : makers[kind])
            for (const taker_t &taker : takers[kind]) {
                std::printf("%s, %s, %zu:", maker.name, taker.name, size);
                void *block = hidden(maker.make(size));
                memset(block, 7, size);
                std::printf(" /");
                taker.take(block, size);
                std::printf("%s\n", made_block != nullptr ? " NOT TAKEN BACK" : "");
                made_block = nullptr;
            }
}

} // namespace

void replaced_seen(const char *form) { std::printf(" %s", form); }

void replaced_made(void *block, void *whole)
{
    made_block = block;
    made_whole = whole;
}

void *replaced_whole(void *block)
{
    if (block != made_block) {
        std::printf(" NOT MADE HERE");
        return block;
    }
    made_block = nullptr;
    return made_whole;
}

int main(int argc, char **argv)
{
    check_eq(argc, 2);
    replaced_header = static_cast<std::size_t>(std::atoi(argv[1]));
    std::printf("the variable: %s\n", std::getenv("THE_VARIABLE"));
    for (std::size_t size : {40, 70000}) each_pair(size);
    for (const auto &kind : takers)
        for (const taker_t &taker : kind) {
            std::printf("%s of null:", taker.name);
            taker.take(hidden(nullptr), 40);
            std::printf("\n");
        }
    for (replaced_refusal = 1; replaced_refusal <= 2; replaced_refusal++)
        for (int kind = 0; kind < 4; kind++)
            for (const maker_t &maker : makers[kind]) {
                std::printf("%s, refusal %d:", maker.name, replaced_refusal);
                std::printf(" = %s\n", answer_to(maker, takers[kind][0]));
            }
    return 0;
}
