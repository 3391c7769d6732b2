/* learn/epoch_log.h: the text of an epoch. */
#include "learn/epoch_log.h"

#include <string.h>

#include "check.h"

static void check_text(epoch_log_text_t text, const char *expected)
{
    text.bytes[text.length] = '\0';
    check(strcmp(text.bytes, expected) == 0);
}

test(the_head_has_what_the_trial_begins_with_and_the_columns)
{
    static const char columns[] =
        "epoch,ms,misses,slab_misses,fresh_kib,purge_ns,idle_kib_ms,idle_kib,used_kib,peak_kib,"
        "taken_kib,refusals,state,runs,bins,depots,wait,decisions,event,reason,cost,other_cost\n";
    char expected[512];
    sprintf(expected, "%s%s", "# hakmem epochs 1, program 01234567, price 700, bins 1, depots 0, "
                              "wait -2\n", columns);
    check_text(epoch_log_head("01234567", 700, &(strategy_t){{1, 0, -2}}), expected);
    sprintf(expected, "%s%s", "# hakmem epochs 1, program -, price 1, bins 0, depots 0, wait 0\n",
            columns);
    check_text(epoch_log_head("", 1, &strategy_default), expected);
}

test(a_line_has_the_epoch_and_what_follows_from_it)
{
    static trial_t trial;
    const trial_epoch_t epoch = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    trial_begin(&trial, 700, &(strategy_t){{0, -1, 1}});
    trial_take(&trial, &(trial_epoch_t){.ms = 100});
    check_text(epoch_log_line(&epoch, &trial),
               "1,1,2,3,4,5,6,7,8,9,10,11,learn,incumbent,0,-1,1,0,,,0,0\n");
}

/* The longest text of all, with the longest words. */
test(any_numbers_fit)
{
    static trial_t trial;
    trial_epoch_t epoch;
    memset(&epoch, 0xff, sizeof epoch);
    trial_begin(&trial, UINT64_MAX, &strategy_default);
    trial.state = TRIAL_CANARY;
    trial.epochs = trial.record_count = UINT64_MAX;
    trial.challenger = 1; /* who runs, in this state */
    for (unsigned parameter = 0; parameter < PARAMETER_COUNT; parameter++)
        trial.contenders[1].strategy.doublings[parameter] = INT8_MIN;
    trial.records[(UINT64_MAX - 1) % LEARN_RECORDS] = (trial_record_t){
        .cost = UINT64_MAX, .other_cost = UINT64_MAX,
        .event = EVENT_ROLLED_BACK, .reason = REASON_PROMISED};
    epoch_log_text_t line = epoch_log_line(&epoch, &trial);
    check(line.length < sizeof line.bytes);
    check_eq(line.bytes[line.length - 1], '\n');
    epoch_log_text_t outcome = epoch_log_outcome(&trial);
    const char id[] = "0123456789012345678901234567890123456789";
    check(epoch_log_head(id, UINT64_MAX, &trial.contenders[1].strategy).length < sizeof line.bytes);
    line.bytes[line.length] = outcome.bytes[outcome.length] = '\0';
    check(strcmp(outcome.bytes, "canary,challenger,-128,-128,-128,18446744073709551615,rolled_back,"
                                "promised,18446744073709551615,18446744073709551615\n") == 0);
    check(strcmp(line.bytes + line.length - outcome.length, outcome.bytes) == 0);
}

check_main()
