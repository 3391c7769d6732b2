/* A library that programs load at run time and that allocates, frees and cleans up after itself. */
#include <stdlib.h>
#include <string.h>

void *plugin_malloc(size_t size);
void plugin_free(void *ptr);
char *plugin_duplicate(const char *text);

static void *kept;

__attribute__((constructor)) static void load(void)
{
    kept = malloc(3000);
}

__attribute__((destructor)) static void unload(void)
{
    free(kept);
}

void *plugin_malloc(size_t size)
{
    return malloc(size);
}

void plugin_free(void *ptr)
{
    free(ptr);
}

char *plugin_duplicate(const char *text)
{
    return strdup(text);
}
