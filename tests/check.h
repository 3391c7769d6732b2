/* Checks and named tests for every test program, in C17 and C++17. Include it once per program.

   test(malloc_of_zero_is_unique) { … check(p != NULL); check_eq(size, 48); }   then   check_main()

   A failed check prints file, line and both values and ends the process with status 1, from any
   thread or child. A program that cannot run here ends by check_skip with status 77. Programs take
   the names of the tests to run as arguments; CHECK_SEED=n changes the seed, which is printed. */
#ifndef HAKMEM_TESTS_CHECK_H
#define HAKMEM_TESTS_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { CHECK_CAPACITY = 128, CHECK_SKIPPED = 77 };
typedef struct check_case { const char *name; void (*run)(void); } check_case_t;
static check_case_t check_cases[CHECK_CAPACITY];
static size_t check_case_count;

__attribute__((noreturn)) static inline void check_end(int status)
{
    (void)fflush(stdout);
    _exit(status); /* No exit handlers: the heap may be broken. */
}

__attribute__((noreturn)) static inline void check_fail(const char *file, int line,
                                                        const char *what)
{
    (void)fprintf(stderr, "%s:%d: check failed: %s\n", file, line, what);
    check_end(1);
}

static inline void check_equal(const char *file, int line, const char *what, uintmax_t a,
                               uintmax_t b)
{
    if (a == b) return;
    (void)fprintf(stderr, "%s:%d: %ju (0x%jx) is not %ju (0x%jx)\n", file, line, a, a, b, b);
    check_fail(file, line, what);
}

#define check(condition) ((condition) ? (void)0 : check_fail(__FILE__, __LINE__, #condition))
#define check_eq(a, b) \
    check_equal(__FILE__, __LINE__, #a " == " #b, (uintmax_t)(a), (uintmax_t)(b))
#define check_skip(reason) ((void)printf("skipped: %s\n", reason), check_end(CHECK_SKIPPED))

#define test(name)                                                                     \
    static void name(void);                                                            \
    __attribute__((constructor)) static void name##_register(void)                     \
    {                                                                                  \
        check(check_case_count < CHECK_CAPACITY);                                      \
        check_cases[check_case_count++] = (check_case_t){#name, name};                 \
    }                                                                                  \
    static void name(void)

#define check_main() int main(int argc, char **argv) { return check_run(argc, argv); }

__attribute__((unused)) static int check_run(int argc, char **argv)
{
    size_t ran = 0;
    for (size_t i = 0; i < check_case_count; i++) {
        bool wanted = argc < 2;
        for (int k = 1; k < argc; k++) wanted |= strcmp(argv[k], check_cases[i].name) == 0;
        if (!wanted) continue;
        check_cases[i].run();
        (void)printf("ok %s\n", check_cases[i].name);
        ran++;
    }
    return ran > 0 ? 0 : 1;
}

static inline uint64_t check_seed(uint64_t fallback)
{
    const char *text = getenv("CHECK_SEED");
    const uint64_t seed = text != NULL ? strtoull(text, NULL, 10) : fallback;
    (void)printf("seed %ju\n", (uintmax_t)seed);
    return seed;
}
#endif
