// Heavy on the compiler's memory (recursive templates, every container) and on its own.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

template <int N> struct Chain {
    using type = std::tuple<std::integral_constant<int, N>, typename Chain<N - 1>::type>;
    static constexpr long sum = N + Chain<N - 1>::sum;
};
template <> struct Chain<0> {
    using type = std::tuple<>;
    static constexpr long sum = 0;
};

template <int N> struct Node {
    std::map<int, std::variant<std::string, std::vector<std::shared_ptr<int>>>> parts;
    std::function<long(long)> grow = [](long value) { return value * 31 + N; };
};

template <std::size_t... I> long walk(std::index_sequence<I...>)
{
    std::tuple<Node<static_cast<int>(I)>...> nodes;
    long value = 1;
    ((std::get<I>(nodes).parts[I] = std::string(I + 20, 'x'),
      value = std::get<I>(nodes).grow(value) % 1000003), ...);
    return value;
}

static unsigned long churn(unsigned seed)
{
    std::unordered_map<unsigned, std::unique_ptr<std::string>> live;
    unsigned state = seed;
    unsigned long sum = 0;
    for (int i = 0; i < 200000; i++) {
        state = state * 1664525u + 1013904223u;
        auto &slot = live[state >> 20];
        if (slot) sum += slot->size() + static_cast<unsigned char>(slot->back());
        slot = std::make_unique<std::string>(1 + (state >> 8) % 300, 'a' + state % 26);
    }
    return sum;
}

int main()
{
    std::cout << Chain<400>::sum << ' ' << sizeof(Chain<40>::type) << ' '
              << walk(std::make_index_sequence<120>{}) << '\n';
    std::vector<unsigned long> sums(4);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; i++) threads.emplace_back([&, i] { sums[i] = churn(i + 1); });
    for (auto &thread : threads) thread.join();
    for (auto sum : sums) std::cout << sum << ' ';
    std::string text = "one 1 two 22 three 333";
    std::cout << std::regex_replace(text, std::regex("([a-z]+) ([0-9]+)"), "$2 $1") << '\n';
    std::stringstream words;
    for (int i = 0; i < 5000; i++) words << i << (i % 7 ? ' ' : '\n');
    std::vector<std::string> lines;
    for (std::string line; std::getline(words, line);) lines.push_back(line);
    std::sort(lines.begin(), lines.end());
    std::cout << lines.size() << ' ' << lines[lines.size() / 2] << '\n';
    try {
        auto huge = std::make_unique<char[]>(static_cast<std::size_t>(-1) / 2 - 4096);
        std::cout << "no bad_alloc " << static_cast<void *>(huge.get()) << '\n';
    } catch (const std::bad_alloc &) {
        std::cout << "bad_alloc\n";
    }
}
