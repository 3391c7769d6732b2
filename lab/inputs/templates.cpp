// Heavy on a compiler: recursive templates, variants, visitors and shared pointers.
#include <map>
#include <memory>
#include <string>
#include <tuple>
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
    using Part = std::variant<int, std::string, std::vector<std::shared_ptr<Node>>>;
    std::map<int, Part> parts;
    static long grow(long value) { return value * 31 + N; }

    long weight() const
    {
        long total = 0;
        for (const auto &[key, part] : parts)
            total += key + std::visit([](const auto &held) { return long(sizeof held); }, part);
        return total;
    }
};

template <std::size_t... I> long walk(std::index_sequence<I...>)
{
    std::tuple<Node<static_cast<int>(I)>...> nodes;
    long value = 1;
    ((std::get<I>(nodes).parts[I] = std::string(I + 20, 'x'),
      value = std::get<I>(nodes).grow(value + std::get<I>(nodes).weight()) % 1000003), ...);
    return value;
}

long all() { return walk(std::make_index_sequence<3>{}) + Chain<200>::sum + sizeof(Chain<40>::type); }
