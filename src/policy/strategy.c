/* The strategy in force: the default, unless somebody learns or has learnt. See strategy.h. */
#include "policy/strategy.h"

const char *const strategy_names[PARAMETER_COUNT] = {
    [PARAMETER_BINS] = "bins", [PARAMETER_DEPOTS] = "depots", [PARAMETER_WAIT] = "wait"};
const strategy_t strategy_default = {{0}};
strategy_t strategy_in_force;
