/* Loads a plugin: host WAY PLUGIN. The ways: "plain" crosses the border in both directions;
   "deepbind" keeps each side to itself; "into_host" and "into_plugin" cross it under RTLD_DEEPBIND,
   where the plugin talks to the C library's malloc and not to ours; "runtime" loads a plugin that
   brings the C++ runtime. */
#include "check.h"

#include <dlfcn.h>

typedef void *(*malloc_t)(size_t);
typedef void (*free_t)(void *);
typedef char *(*duplicate_t)(const char *);

static void *plugin;
static malloc_t plugin_malloc;
static free_t plugin_free;
static duplicate_t plugin_duplicate;

static void open_plugin(const char *path, int flags)
{
    plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
    if (plugin == NULL) puts(dlerror());
    check(plugin != NULL);
    plugin_malloc = (malloc_t)dlsym(plugin, "plugin_malloc");
    plugin_free = (free_t)dlsym(plugin, "plugin_free");
    plugin_duplicate = (duplicate_t)dlsym(plugin, "plugin_duplicate");
    check(plugin_malloc != NULL && plugin_free != NULL && plugin_duplicate != NULL);
}

static void cross_both_ways(const char *path)
{
    for (size_t i = 0; i < 50; i++) {
        open_plugin(path, 0);
        char *theirs = memset(plugin_malloc(i * 1000 + 1), 7, i * 1000 + 1);
        char *text = plugin_duplicate("carried");
        plugin_free(malloc(i * 1000 + 1));
        check_eq(dlclose(plugin), 0);
        check_eq(theirs[i * 1000], 7); /* Blocks outlive the library that asked for them. */
        check(strcmp(text, "carried") == 0);
        free(theirs);
        free(text);
    }
}

static void keep_to_itself(const char *path)
{
    for (size_t i = 0; i < 50; i++) {
        open_plugin(path, RTLD_DEEPBIND);
        plugin_free(plugin_malloc(i * 1000 + 1));
        free(malloc(i * 1000 + 1));
        check_eq(dlclose(plugin), 0);
    }
}

static void bring_runtime(const char *path)
{
    plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    check(plugin != NULL);
    check(((int (*)(void))dlsym(plugin, "plugin_is_refused_politely"))());
}

int main(int argc, char **argv)
{
    check_eq(argc, 3);
    if (strcmp(argv[1], "plain") == 0) cross_both_ways(argv[2]);
    if (strcmp(argv[1], "deepbind") == 0) keep_to_itself(argv[2]);
    if (strcmp(argv[1], "runtime") == 0) bring_runtime(argv[2]);
    if (strncmp(argv[1], "into", 4) == 0) open_plugin(argv[2], RTLD_DEEPBIND);
    if (strcmp(argv[1], "into_host") == 0) {
        void *block = plugin_malloc(100);
        dprintf(1, "0x%lx\n", (unsigned long)(uintptr_t)block);
        free(block);
    }
    if (strcmp(argv[1], "into_plugin") == 0) {
        plugin_free(malloc(100));
        plugin_free(plugin_duplicate("text"));
    }
    (void)puts("ok");
    return 0;
}
