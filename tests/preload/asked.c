/* Prints the values in force of the options that are its arguments. */
#include "check.h"
#include "weak.h"

#ifdef POLICY
HAKMEM_POLICY_NOTE(POLICY)
#endif

int main(int argc, char **argv)
{
    for (int index = 1; index < argc; index++) {
        int64_t value;
        check_eq(hakmem_option_get(argv[index], &value), 0);
        printf("%jd\n", (intmax_t)value);
    }
    return 0;
}
