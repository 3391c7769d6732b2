// What causes.c does, by containers of C++: templates allocate, not the program's own functions.
#include "check.h"

#include <poll.h>
#include <semaphore.h>

#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#define NOINLINE __attribute__((noinline))

namespace {

constexpr size_t STEP = 1 << 18, PAGE = 36 << 20;
constexpr int MANY = 80000, THREADS = 24;

template <size_t size> struct Piece {
    explicit Piece(char text) { memset(bytes, text, size); }
    char bytes[size];
};

template <class Key> struct Session {
    Key key;
    std::vector<std::string> words;
};

std::map<int, Session<std::string>> *sessions;
std::vector<std::unique_ptr<Piece<512>>> *entries;
std::vector<Piece<64>> rows;
int step;

NOINLINE void keep_request(int number)
{
    auto &session = (*sessions)[number];
    session.key = "request";
    session.words.emplace_back(2000, 'x');
}

void leak(int count)
{
    if (sessions == nullptr) sessions = new std::map<int, Session<std::string>>;
    for (int index = 0; index < count; index++) keep_request(static_cast<int>(sessions->size()));
}

template <class Value> NOINLINE std::unique_ptr<Value> make_index_entry()
{
    return std::make_unique<Value>('i');
}

template <class Value> NOINLINE void make_temporary(std::vector<Value> &temporaries)
{
    temporaries.push_back(std::make_unique<typename Value::element_type>('t'));
}

void fragment()
{
    entries = new std::vector<std::unique_ptr<Piece<512>>>;
    std::vector<std::unique_ptr<Piece<512>>> temporaries;
    for (int index = 0; index < MANY; index++) {
        if (index % 8 == 0) entries->push_back(make_index_entry<Piece<512>>());
        else make_temporary(temporaries);
    }
}

NOINLINE void fill_caches()
{
    for (size_t size = 32; size <= 1024; size += 64) {
        std::list<std::vector<char>> blocks;
        for (int index = 0; index < 96; index++) blocks.emplace_back(size, 'x');
    }
}

void park()
{
    static sem_t is_parked;
    check_eq(sem_init(&is_parked, 0, 0), 0);
    for (int index = 0; index < THREADS; index++) {
        std::thread([] {
            fill_caches();
            check_eq(sem_post(&is_parked), 0);
            for (;;) pause();
        }).detach();
    }
    for (int index = 0; index < THREADS; index++) check_eq(sem_wait(&is_parked), 0);
}

NOINLINE void render_page(size_t size)
{
    std::vector<char> page(size, 'x');
    check_eq(page[size / 2], 'x');
}

NOINLINE void append_rows(size_t size)
{
    const size_t count = size / sizeof(rows[0]);
    rows.reserve(rows.size() + count); // and no more: each time all of it moves
    for (size_t index = 0; index < count; index++) rows.emplace_back('r');
}

void begin(const std::string &cause)
{
    if (cause == "leak") leak(10000);
    if (cause == "fragmentation") fragment();
    if (cause == "parked") park();
    if (cause == "array") append_rows(8 << 20);
    for (int index = 0; index < 8; index++) {
        if (cause == "same" || cause == "more") render_page(PAGE + static_cast<size_t>(index));
        if (cause == "array") append_rows(STEP);
    }
}

void go_on(const std::string &cause)
{
    step++;
    if (cause == "leak") leak(100);
    if (cause == "fragmentation") std::vector<char>(200000);
    if (cause == "parked" && step == 25) std::vector<char>(200000);
    if (cause == "same" && step % 7 == 1) render_page(PAGE);
    if (cause == "more" && step % 7 == 1) render_page(PAGE + static_cast<size_t>(step) * 9000);
    if (cause == "array") append_rows(STEP);
}

} // namespace

int main(int argc, char **argv)
{
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    check(argc > 1);
    begin(argv[1]);
    check(write(STDOUT_FILENO, "ready\n", 6) == 6);
    while (poll(&input, 1, 100) == 0) go_on(argv[1]);
    rows = {};
    return 0;
}
