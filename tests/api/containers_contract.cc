// The containers of the standard library, from one thread and from several, checked by value.
#include "check.h"

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

std::string text_of(unsigned i)
{
    return std::string(i % 300, char('a' + i % 26)) + std::to_string(i);
}

void churn_maps(unsigned seed)
{
    std::map<unsigned, std::string> ordered;
    std::unordered_map<unsigned, std::string> hashed;
    for (unsigned i = 0; i < 20000; i++) {
        const unsigned key = (i * 2654435761u + seed) % 5000;
        ordered[key] = text_of(key);
        hashed[key] = text_of(key);
        if (i % 3 == 0) {
            ordered.erase((key * 7) % 5000);
            hashed.erase((key * 7) % 5000);
        }
    }
    check_eq(ordered.size(), hashed.size());
    for (const auto &entry : ordered) {
        check(entry.second == text_of(entry.first));
        check(hashed.at(entry.first) == entry.second);
    }
}

void churn_sequences(unsigned seed)
{
    std::vector<std::unique_ptr<std::vector<unsigned>>> vectors;
    std::deque<std::string> queue;
    std::list<std::shared_ptr<std::string>> list;
    for (unsigned i = 0; i < 3000; i++) {
        auto grown = std::make_unique<std::vector<unsigned>>();
        for (unsigned k = 0; k < i % 257; k++) grown->push_back(seed + k);
        vectors.push_back(std::move(grown));
        queue.push_back(text_of(i));
        if (queue.size() > 100) queue.pop_front();
        list.push_back(std::make_shared<std::string>(text_of(i)));
        if (i % 2 == 0) list.pop_front();
    }
    for (unsigned i = 0; i < 3000; i++) {
        check_eq(vectors[i]->size(), i % 257);
        for (unsigned k = 0; k < i % 257; k++) check_eq((*vectors[i])[k], seed + k);
    }
    check(queue.front() == text_of(2900) && queue.back() == text_of(2999));
    check(*list.back() == text_of(2999));
}

} // namespace

test(containers_hold_their_values)
{
    churn_maps(1);
    churn_sequences(1);
}

test(containers_hold_their_values_in_four_threads)
{
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; i++) {
        threads.emplace_back([i] {
            churn_maps(i);
            churn_sequences(i);
        });
    }
    for (auto &thread : threads) thread.join();
}

test(strings_built_in_one_thread_die_in_another)
{
    for (unsigned round = 0; round < 50; round++) {
        auto strings = std::make_unique<std::vector<std::string>>();
        std::thread builder([&] {
            for (unsigned i = 0; i < 1000; i++) strings->push_back(text_of(i + round));
        });
        builder.join();
        std::thread consumer([&] {
            for (unsigned i = 0; i < 1000; i++) check((*strings)[i] == text_of(i + round));
            strings.reset();
        });
        consumer.join();
    }
}

check_main()
