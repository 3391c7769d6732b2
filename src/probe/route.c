/* Storage of the route counters. */
#include "probe/route.h"

uint64_t route_counts[ROUTE_COUNT];

const char *const route_names[ROUTE_COUNT] = {
#define ROUTE(name) #name,
#include "probe/route_table.h"
#undef ROUTE
};
