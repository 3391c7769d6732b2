/* The log of epochs in a file. See learn_log.h. Lines are written under the lock of upkeep. */
#include "api/learn_log.h"

#include "api/output_file.h"
#include "api/policy_load.h"
#include "harden/fatal.h"
#include "learn/epoch_log.h"
#include "learn/in_run.h"
#include "policy/options.h"

static output_file_t file;
static bool is_on;

static void append(const epoch_log_text_t *text)
{
    is_on = output_file_append(&file, text->bytes, text->length);
}

static void log_epoch(const trial_epoch_t *epoch, const trial_t *trial)
{
    if (!is_on)
        return;
    epoch_log_text_t line = epoch_log_line(epoch, trial);
    append(&line);
}

void learn_log_prepare(void)
{
    if (option_texts.learn_log[0] == '\0')
        return;
    if (!options.learn) {
        complain("HAKMEM_LEARN_LOG is ignored: HAKMEM_LEARN is off");
        return;
    }
    if (!output_file_open(&file, option_texts.learn_log, "log of learning", true))
        return;
    epoch_log_text_t head =
        epoch_log_head(policy_program().text, (uint64_t)options.price, &strategy_in_force);
    append(&head);
    in_run_logger = log_epoch;
}

void learn_log_at_fork_in_child(void)
{
    is_on = false;
    output_file_at_fork_in_child(&file, false);
}
