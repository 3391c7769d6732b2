/* The helper thread of the fake kernel: it runs when the test says so. */
#include "fake_os.h"
#include "os/helper.h"

uint32_t os_helper_id;
static void (*helper_work)(void);
static bool has_helper;
static bool is_in_helper;

void fake_os_allow_helper(void)
{
    has_helper = true;
}

bool os_helper_start(void (*run)(void))
{
    if (!has_helper || os_helper_id != 0)
        return false;
    helper_work = run;
    os_helper_id = 1;
    return true;
}

void fake_os_run_helper(void)
{
    is_in_helper = true;
    helper_work();
    is_in_helper = false;
    os_helper_id = 0;
}

void os_helper_allow(void) {}

bool os_helper_has_rights(void)
{
    return true;
}

bool os_is_helper(void)
{
    return is_in_helper;
}

static void (*meanwhile)(void);

void fake_os_while_helper_sleeps(void (*run)(void))
{
    meanwhile = run;
}

void os_helper_sleep(uint64_t ms)
{
    fake_os_advance(ms);
    if (meanwhile != NULL)
        meanwhile();
}
