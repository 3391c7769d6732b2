/* A C program that loads a C++ plugin: late_runtime PLUGIN. */
#include "check.h"

#include <dlfcn.h>

int main(int argc, char **argv)
{
    check_eq(argc, 2);
    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    check(plugin != NULL);
    int (*is_refused_politely)(void) = (int (*)(void))dlsym(plugin, "plugin_is_refused_politely");
    check(is_refused_politely());
    (void)puts("ok");
    return 0;
}
