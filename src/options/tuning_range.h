/* The range in which a number of the tuning table makes sense (options/tuning.h). */
#ifndef HAKMEM_OPTIONS_TUNING_RANGE_H
#define HAKMEM_OPTIONS_TUNING_RANGE_H

#define TUNING_RANGE(name, least, most)                                                            \
    _Static_assert((name) >= (least) && (name) <= (most), #name " is out of its range")

#endif
