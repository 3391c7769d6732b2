/* Storage of the route counters. */
#include "base/route.h"

uint64_t route_counts[ROUTE_COUNT];

#define ROUTE_TEXT(name) #name,
const char *const route_names[ROUTE_COUNT] = {ROUTES(ROUTE_TEXT)};
