// A market: threads match orders in maps of lists and hand the trades to an accountant.
// Arguments: threads, orders of each.
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

struct Order {
    std::uint64_t number;
    int price, amount;
    std::string owner;
};
using Level = std::list<std::shared_ptr<Order>>;

struct Trade {
    std::shared_ptr<Order> bought, sold;
    int amount;
    std::string note;
};

class Desk {
public:
    void put(std::vector<std::unique_ptr<Trade>> batch)
    {
        {
            std::lock_guard hold(lock_);
            batches_.push_back(std::move(batch));
        }
        news_.notify_one();
    }
    std::vector<std::unique_ptr<Trade>> take()
    {
        std::unique_lock hold(lock_);
        news_.wait(hold, [this] { return !batches_.empty(); });
        auto batch = std::move(batches_.front());
        batches_.pop_front();
        return batch;
    }

private:
    std::mutex lock_;
    std::condition_variable news_;
    std::deque<std::vector<std::unique_ptr<Trade>>> batches_;
};

class Market {
public:
    Market(unsigned seed, Desk &desk) : state_(seed), desk_(desk) {}

    void run(int orders)
    {
        for (int number = 0; number < orders; ++number) {
            auto order = std::make_shared<Order>();
            order->number = static_cast<std::uint64_t>(number);
            order->price = 1000 + draw(200);
            order->amount = 1 + draw(50);
            order->owner = "owner number " + std::to_string(draw(5000));
            known_[order->number] = order;
            if (draw(2))
                match(std::move(order), asks_, bids_, [](int one, int other) { return one >= other; });
            else
                match(std::move(order), bids_, asks_, [](int one, int other) { return one <= other; });
            if (number > 3000 && draw(3) == 0)
                known_.erase(static_cast<std::uint64_t>(number - 3000 + draw(3000)));
        }
        desk_.put(std::move(trades_));
        desk_.put({});
    }

private:
    int draw(int limit)
    {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<int>((state_ >> 33) % static_cast<unsigned>(limit));
    }

    void match(std::shared_ptr<Order> order, std::map<int, Level> &others,
               std::map<int, Level> &own, const std::function<bool(int, int)> &fits)
    {
        while (order->amount > 0 && !others.empty()) {
            auto level = &own == &bids_ ? others.begin() : std::prev(others.end());
            if (!fits(order->price, level->first))
                break;
            auto other = level->second.front();
            int amount = std::min(order->amount, other->amount);
            order->amount -= amount;
            other->amount -= amount;
            trades_.push_back(std::make_unique<Trade>(
                Trade{order, other, amount, order->owner + " with " + other->owner}));
            if (other->amount == 0)
                level->second.pop_front();
            if (level->second.empty())
                others.erase(level);
            if (trades_.size() == 64)
                desk_.put(std::exchange(trades_, {}));
        }
        if (order->amount > 0)
            own[order->price].push_back(std::move(order));
    }

    std::uint64_t state_;
    Desk &desk_;
    std::map<int, Level> bids_, asks_;
    std::unordered_map<std::uint64_t, std::shared_ptr<Order>> known_;
    std::vector<std::unique_ptr<Trade>> trades_;
};

int main(int, char **words)
{
    const int threads = std::atoi(words[1]), orders = std::atoi(words[2]);
    Desk desk;
    std::vector<std::thread> markets;
    for (int number = 0; number < threads; ++number)
        markets.emplace_back([&desk, number, orders] {
            Market(static_cast<unsigned>(number) + 1, desk).run(orders);
        });
    std::map<std::string, long> accounts;
    long trades = 0, sum = 0;
    for (int ended = 0; ended < threads;) {
        auto batch = desk.take();
        ended += batch.empty();
        for (auto &trade : batch) {
            ++trades;
            sum += static_cast<long>(trade->note.size()) + trade->amount;
            accounts[trade->bought->owner] += trade->amount;
            accounts[trade->sold->owner] -= trade->amount;
        }
    }
    for (auto &market : markets)
        market.join();
    std::cout << trades << ' ' << sum << ' ' << accounts.size() << '\n';
}
