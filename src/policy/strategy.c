/* The strategy in force: the default, unless somebody learns. See strategy.h. */
#include "policy/strategy.h"

strategy_t strategy_in_force;
