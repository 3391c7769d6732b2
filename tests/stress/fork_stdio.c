/* fork beside stdio: getline grows its buffer while it holds its stream, fflush(NULL) holds the
   list of all streams while it waits for each of them, and fork wants that list. popen, system and
   posix_spawn, which start programs without fork's handlers, stand beside. A hang ends by alarm. */
#include "api/heap.h"
#include "check.h"

#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { FORK_COUNT = 160, LINE_LENGTH = 3000000, SHORT_LINE = 200000, HANG_SECONDS = 120 };

extern char **environ;

static atomic_bool stop;

static bool goes_on(void)
{
    return !atomic_load_explicit(&stop, memory_order_relaxed);
}

/* A stream that holds one line of that length. */
static FILE *line_of(size_t length)
{
    FILE *stream = tmpfile();
    check(stream != NULL);
    char *text = memset(hidden(malloc(length)), 'x', length);
    check_eq(fwrite(text, 1, length, stream), length);
    free(text);
    return stream;
}

static void *read_lines(void *unused)
{
    FILE *stream = line_of(LINE_LENGTH);
    while (goes_on()) {
        char *line = NULL;
        size_t room = 0;
        rewind(stream);
        check_eq(getline(&line, &room, stream), LINE_LENGTH);
        free(line);
    }
    check_eq(fclose(stream), 0);
    return unused;
}

static void *flush_all(void *unused)
{
    while (goes_on()) (void)fflush(NULL);
    return unused;
}

static void *open_and_close(void *unused)
{
    while (goes_on()) {
        FILE *stream = fopen("/dev/null", "w");
        check(stream != NULL && fputs("text", stream) >= 0);
        check_eq(fclose(stream), 0);
    }
    return unused;
}

static void *run_programs(void *unused)
{
    char *arguments[] = {"true", NULL};
    while (goes_on()) {
        FILE *pipe_of = popen("echo word", "r");
        char word[16];
        check(pipe_of != NULL && fgets(word, sizeof word, pipe_of) != NULL);
        check(strcmp(word, "word\n") == 0);
        check_eq(pclose(pipe_of), 0);
        check_eq(system("true"), 0);
        pid_t child;
        int status;
        check_eq(posix_spawnp(&child, "true", NULL, NULL, arguments, environ), 0);
        check_eq(waitpid(child, &status, 0), child);
        check_eq(status, 0);
    }
    return unused;
}

/* The child has one thread and all of stdio: streams can be read, opened, flushed. */
static void live_as_a_child(void)
{
    (void)alarm(HANG_SECONDS);
    FILE *stream = line_of(SHORT_LINE);
    char *line = NULL;
    size_t room = 0;
    rewind(stream);
    check_eq(getline(&line, &room, stream), SHORT_LINE);
    check_eq(fflush(NULL), 0);
    check_eq(fclose(stream), 0);
    free(line);
    const pid_t grandchild = fork();
    if (grandchild == 0) _exit(fflush(NULL));
    int status = 1;
    check_eq(waitpid(grandchild, &status, 0), grandchild);
    _exit(status);
}

static void fork_many(size_t count, bool uses_stdio)
{
    for (size_t i = 0; i < count; i++) {
        const pid_t child = fork();
        if (child == 0 && uses_stdio) live_as_a_child();
        if (child == 0) _exit(0);
        int status = 1;
        check_eq(waitpid(child, &status, 0), child);
        check_eq(status, 0);
    }
}

static void beside(void *(*const *bodies)(void *), size_t body_count, size_t fork_count)
{
    pthread_t threads[4];
    (void)alarm(HANG_SECONDS);
    atomic_store(&stop, false);
    for (size_t i = 0; i < body_count; i++)
        check_eq(pthread_create(&threads[i], NULL, bodies[i], NULL), 0);
    fork_many(fork_count, false);
    fork_many(fork_count / 10, true);
    atomic_store(&stop, true);
    for (size_t i = 0; i < body_count; i++) check_eq(pthread_join(threads[i], NULL), 0);
    (void)alarm(0);
}

test(streams_are_read_and_flushed_while_another_thread_forks)
{
    void *(*const bodies[])(void *) = {read_lines, flush_all};
    beside(bodies, 2, FORK_COUNT);
}

test(streams_come_and_go_while_another_thread_forks)
{
    void *(*const bodies[])(void *) = {open_and_close, read_lines, flush_all};
    beside(bodies, 3, FORK_COUNT);
}

test(programs_are_started_while_another_thread_forks)
{
    void *(*const bodies[])(void *) = {run_programs, run_programs, read_lines, flush_all};
    beside(bodies, 4, FORK_COUNT / 8);
}

check_main()
