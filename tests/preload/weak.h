/* hakmem.h for programs that are linked without the library, and get it when they start. */
#ifndef HAKMEM_TESTS_WEAK_H
#define HAKMEM_TESTS_WEAK_H

#include "hakmem.h"

#pragma weak hakmem_owns
#pragma weak hakmem_purge
#pragma weak hakmem_idle
#pragma weak hakmem_check
#pragma weak hakmem_get_statistics
#pragma weak hakmem_option_get
#pragma weak hakmem_profile_start
#pragma weak hakmem_profile_stop
#pragma weak hakmem_profile_write
#pragma weak hakmem_heap_new
#pragma weak hakmem_heap_malloc
#pragma weak hakmem_heap_calloc
#pragma weak hakmem_heap_aligned_alloc
#pragma weak hakmem_heap_of
#pragma weak hakmem_heap_destroy
#pragma weak hakmem_heap_get_statistics
#pragma weak hakmem_malloc_group
#pragma weak hakmem_aligned_alloc_group
#endif
