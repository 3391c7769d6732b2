/* Detours. See detour.h. */
#include "api/detour.h"

#include "slab/size_class.h"

uint8_t detours;

void detour_set(detour_t which, bool wanted)
{
    uint8_t now = wanted ? __atomic_or_fetch(&detours, which, __ATOMIC_RELAXED)
                         : __atomic_and_fetch(&detours, (uint8_t)~which, __ATOMIC_RELAXED);
    /* Sites close the classes that they name, each by itself. */
    size_classes_open((now & (DETOUR_RECORDS | DETOUR_SAMPLES)) == 0);
}
