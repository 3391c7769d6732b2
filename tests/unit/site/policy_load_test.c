/* site/policy_load.c: which policy is in force. The program has one in a note: see
 * tests/preload/test_policy.py. Here files are fakes. */
#include "site/policy_load.h"

#include "check.h"
#include "fake_os.h"
#include "os/os.h"

#define HEAD "hakmem policy 1\n"

static char *nothing[] = {(char *)"PATH=/bin", NULL};
static char of_machine[200];

/* The file of this program in the machine's folder. */
static const char *path_of_machine(void)
{
    size_t length;
    const char *id = os_program_note("GNU", OS_NOTE_BUILD_ID, &length);
    if (id == NULL) check_skip("the linker wrote no build ID");
    int at = sprintf(of_machine, "/etc/hakmem/policies/");
    for (size_t index = 0; index < length && index < BUILD_ID_BYTES; index++)
        at += sprintf(of_machine + at, "%02x", (unsigned char)id[index]);
    (void)sprintf(of_machine + at, ".policy");
    return of_machine;
}

test(without_a_policy_nothing_is_read)
{
    (void)path_of_machine();
    check(!policy_is_shipped(nothing));
    check(policy_load(nothing) == NULL && policy_in_force() == NULL);
    check_eq(fake_os_file_reads(), 2); /* neither file is there */
}

test(the_policy_of_the_machine_is_in_force)
{
    fake_os_set_file(path_of_machine(), HEAD "option price lean\n");
    check(policy_is_shipped(nothing));
    const policy_t *found = policy_load(nothing);
    check(found != NULL && found == policy_in_force());
    check_eq(found->option_count, 1);
    check_eq(found->options[0].value, 3500);
}

test(the_environment_overrides_it_and_may_forbid_any)
{
    char *named[] = {(char *)"HAKMEM_POLICY=/a.policy", NULL};
    char *none[] = {(char *)"HAKMEM_POLICY=none", NULL};
    char *empty[] = {(char *)"HAKMEM_POLICY=", NULL};
    fake_os_set_file(path_of_machine(), HEAD "option price lean\n");
    fake_os_set_file("/a.policy", HEAD "option price fast\n");
    check_eq(policy_load(named)->options[0].value, 70);
    check_eq(policy_load(empty)->options[0].value, 3500); /* as if it were not set */
    check(policy_load(none) == NULL && policy_in_force() == NULL);
}

test(secure_programs_have_none)
{
    fake_os_set_file(path_of_machine(), HEAD "option price lean\n");
    size_t reads = fake_os_file_reads();
    check(!policy_is_shipped(NULL) && policy_load(NULL) == NULL);
    check_eq(fake_os_file_reads(), reads);
}

test(one_for_another_program_is_not_in_force)
{
    fake_os_set_file(path_of_machine(),
                     HEAD "program 0123456789abcdef0123456789abcdef01234567\noption price lean\n");
    check(policy_load(nothing) == NULL);
}

test(a_wrong_one_is_refused_as_a_whole)
{
    fake_os_set_file(path_of_machine(), HEAD "option price lean\noption price 0\n");
    check(policy_load(nothing) == NULL);
    policy_complain();
}

check_main()
