/* A heap profile of one part of a program.
 *
 *   cc -g profile.c $(pkg-config --cflags --libs hakmem) -o profile && ./profile part.pb
 *   go tool pprof -top ./profile part.pb */
#include <hakmem.h>

#include <stdio.h>
#include <stdlib.h>

#define ENTRIES 100000

static void *entries[ENTRIES];

static void fill_the_table(void)
{
    for (int index = 0; index < ENTRIES; index++)
        entries[index] = malloc(200);
}

int main(int count, char **words)
{
    const char *path = count > 1 ? words[1] : "part.pb";
    if (hakmem_profile_start((size_t)64 * 1024) != 0) /* a sample for each 64 KiB */
        return 1;
    fill_the_table();
    hakmem_profile_stop();
    if (hakmem_profile_write(path) != 0)
        return 1;
    printf("%s\n", path);
    return 0;
}
