/*
 * replay_epochs LOG
 *
 * Decides again what a process has decided while it learnt, from its log of epochs (option
 * learn_log, src/learn/epoch_log.h), and prints each decision. Status 0: they are those of the log;
 * 1: one is not; 2: this is no such log.
 */
#include "learn/epoch_log.h"
#include "policy/policy_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAME, DIFFERENT, NO_LOG, LINE_MOST = 1024 };

static const char *path;
static unsigned line_number;
static char line[LINE_MOST];
static trial_t trial;

static _Noreturn void stop(const char *why)
{
    fprintf(stderr, "replay_epochs: %s, line %u: %s\n", path, line_number, why);
    exit(NO_LOG);
}

/* False: the log is over. */
static bool read_line(FILE *log)
{
    line_number++;
    if (fgets(line, sizeof line, log) == NULL) return false;
    if (strchr(line, '\n') == NULL) stop(feof(log) ? "it is cut off" : "it is too long");
    return true;
}

/* Goes on behind `end`, which must follow the number. */
static uint64_t read_number(const char **at, char end)
{
    char *behind;
    errno = 0;
    const uint64_t number = strtoull(*at, &behind, 10);
    if (**at < '0' || **at > '9' || errno != 0 || *behind != end) stop("a number is wrong");
    *at = behind + 1;
    return number;
}

static void read_head(FILE *log)
{
    char program[BUILD_ID_TEXT];
    uint64_t price;
    int first[PARAMETER_COUNT];
    if (!read_line(log) ||
        sscanf(line, EPOCH_LOG_HEAD "%40[^,], price %" SCNu64 ", bins %d, depots %d, wait %d",
               program, &price, &first[PARAMETER_BINS], &first[PARAMETER_DEPOTS],
               &first[PARAMETER_WAIT]) != 5)
        stop("this is no log of epochs");
    strategy_t strategy;
    for (unsigned parameter = 0; parameter < PARAMETER_COUNT; parameter++)
        strategy.doublings[parameter] = (int8_t)first[parameter];
    trial_begin(&trial, price, &strategy);
    const epoch_log_text_t head = epoch_log_head(program, price, &strategy);
    const size_t length = strlen(line);
    if (!trial_is_valid(&trial) || length > head.length || memcmp(line, head.bytes, length) != 0)
        stop("a value of the head is wrong");
    if (!read_line(log) || strlen(line) != head.length - length ||
        memcmp(line, head.bytes + length, head.length - length) != 0)
        stop("these are not the columns of this version");
}

static void print_strategy(const strategy_t *strategy)
{
    printf("bins %+d, depots %+d, wait %+d", strategy->doublings[PARAMETER_BINS],
           strategy->doublings[PARAMETER_DEPOTS], strategy->doublings[PARAMETER_WAIT]);
}

static void print_decision(const trial_record_t *record)
{
    printf("epoch %" PRIu64 ": %s, %s: ", record->epoch + 1, trial_event_names[record->event],
           trial_reason_names[record->reason]);
    print_strategy(&record->strategy);
    printf("; cost %" PRIu64 " ns/s, of the other %" PRIu64 "\n", record->cost, record->other_cost);
}

/* False: the log says that something else was decided. */
static bool replay_line(void)
{
    const char *at = line;
    trial_epoch_t epoch;
    if (read_number(&at, ',') != trial.epochs + 1) stop("an epoch before it is missing");
#define READ(field) epoch.field = read_number(&at, ',');
    EPOCH_LOG_FIELDS(READ)
#undef READ
    uint64_t decisions = trial.record_count;
    trial_take(&trial, &epoch);
    for (; decisions < trial.record_count; decisions++)
        print_decision(&trial.records[decisions % LEARN_RECORDS]);
    const epoch_log_text_t here = epoch_log_outcome(&trial);
    if (strlen(at) == here.length && memcmp(at, here.bytes, here.length) == 0) return true;
    printf("line %u, in the log: %sdecided here: %.*s", line_number, at, (int)here.length,
           here.bytes);
    return false;
}

int main(int count, char **arguments)
{
    if (count != 2) {
        fputs("usage: replay_epochs LOG\n", stderr);
        return NO_LOG;
    }
    path = arguments[1];
    FILE *log = fopen(path, "r");
    if (log == NULL) stop(strerror(errno));
    read_head(log);
    while (read_line(log))
        if (!replay_line()) return DIFFERENT;
    if (ferror(log)) stop("it cannot be read");
    fclose(log);
    printf("%" PRIu64 " epochs, %" PRIu64 " decisions, as in the log\n", trial.epochs,
           trial.record_count);
    return SAME;
}
