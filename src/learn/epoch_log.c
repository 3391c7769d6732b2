/* The log of epochs. See epoch_log.h. */
#include "learn/epoch_log.h"

#include "base/format.h"

#define COUNT(field) +1
_Static_assert(sizeof(trial_epoch_t) == (0 EPOCH_LOG_FIELDS(COUNT)) * sizeof(uint64_t),
               "all that an epoch says is in the log");
#undef COUNT

static void add_text(epoch_log_text_t *text, const char *more)
{
    while (*more != '\0')
        text->bytes[text->length++] = *more++;
}

static void add_number(epoch_log_text_t *text, uint64_t number)
{
    line_t line = {.length = 0};
    line_add_number(&line, number);
    line.text[line.length] = '\0';
    add_text(text, line.text);
}

static void add_signed(epoch_log_text_t *text, int number)
{
    add_text(text, number < 0 ? "-" : "");
    add_number(text, (uint64_t)(number < 0 ? -number : number));
}

epoch_log_text_t epoch_log_head(const char *program, uint64_t price, const strategy_t *first)
{
    epoch_log_text_t text = {.length = 0};
    add_text(&text, EPOCH_LOG_HEAD);
    add_text(&text, program[0] == '\0' ? "-" : program);
    add_text(&text, ", price ");
    add_number(&text, price);
    for (unsigned parameter = 0; parameter < PARAMETER_COUNT; parameter++) {
        add_text(&text, ", ");
        add_text(&text, strategy_names[parameter]);
        add_text(&text, " ");
        add_signed(&text, first->doublings[parameter]);
    }
    add_text(&text, "\nepoch");
#define ADD_NAME(field) add_text(&text, "," #field);
    EPOCH_LOG_FIELDS(ADD_NAME)
#undef ADD_NAME
    add_text(&text, ",state,runs,bins,depots,wait,decisions,event,reason,cost,other_cost\n");
    return text;
}

static void add_outcome(epoch_log_text_t *text, const trial_t *trial)
{
    uint64_t count = trial->record_count;
    const trial_record_t *last = &trial->records[(count - 1) % LEARN_RECORDS];
    bool is_incumbent = trial_running(trial) == trial->incumbent;
    add_text(text, trial_state_names[trial->state]);
    add_text(text, is_incumbent ? ",incumbent," : ",challenger,");
    for (unsigned parameter = 0; parameter < PARAMETER_COUNT; parameter++) {
        add_signed(text, trial_strategy(trial)->doublings[parameter]);
        add_text(text, ",");
    }
    add_number(text, count);
    add_text(text, ",");
    add_text(text, count == 0 ? "" : trial_event_names[last->event]);
    add_text(text, ",");
    add_text(text, count == 0 ? "" : trial_reason_names[last->reason]);
    add_text(text, ",");
    add_number(text, count == 0 ? 0 : last->cost);
    add_text(text, ",");
    add_number(text, count == 0 ? 0 : last->other_cost);
    add_text(text, "\n");
}

epoch_log_text_t epoch_log_line(const trial_epoch_t *epoch, const trial_t *trial)
{
    epoch_log_text_t text = {.length = 0};
    add_number(&text, trial->epochs);
#define ADD_VALUE(field)                                                                           \
    add_text(&text, ",");                                                                          \
    add_number(&text, epoch->field);
    EPOCH_LOG_FIELDS(ADD_VALUE)
#undef ADD_VALUE
    add_text(&text, ",");
    add_outcome(&text, trial);
    return text;
}

epoch_log_text_t epoch_log_outcome(const trial_t *trial)
{
    epoch_log_text_t text = {.length = 0};
    add_outcome(&text, trial);
    return text;
}
