/* Detours. See detour.h. */
#include "slab/detour.h"

#include "observe/sampler.h"
#include "slab/size_class.h"

uint8_t detours;

void detour_set(detour_t which, bool wanted)
{
    unsigned now = wanted ? __atomic_or_fetch(&detours, (uint8_t)which, __ATOMIC_SEQ_CST)
                          : __atomic_and_fetch(&detours, (uint8_t)~which, __ATOMIC_SEQ_CST);
    unsigned before;
    do { /* until no other thread has changed it meanwhile: then all agree */
        before = now;
        /* Sites close the classes that they name, each by itself. */
        size_classes_open((now & (DETOUR_RECORDS | DETOUR_SAMPLES)) == 0);
        sampler_open_hits(now == DETOUR_SAMPLES);
        now = __atomic_load_n(&detours, __ATOMIC_SEQ_CST);
    } while (now != before);
}
