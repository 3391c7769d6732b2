/* The C++ runtime (libstdc++ or libc++): there only if the program or a plugin brought it. */
#ifndef HAKMEM_OS_CXX_RUNTIME_H
#define HAKMEM_OS_CXX_RUNTIME_H

#include "base/types.h"

/* A function of the C++ runtime, whatever its scope and whoever replaces it. NULL: none. */
void *cxx_find(const char *name);

/* The same before the C library is initialised, where dlopen must not be called: it would run the
 * constructor of the C library without the environment. Finds libraries behind this one only. */
void *cxx_find_at_load(const char *name);

/* Calls the program's new-handler, which may throw. True: it may have freed something. */
bool cxx_call_new_handler(void);

/* Throws std::bad_alloc; ends the program if there is no runtime to throw with. */
_Noreturn void cxx_throw_bad_alloc(void);

/* Has the runtime free what it keeps for exceptions that find no memory. Only at the very end of
 * the process: an exception that finds none afterwards ends it otherwise than it should. */
void cxx_free_pool(void);

#endif
