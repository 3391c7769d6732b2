/* The first thing that a thread frees is another's block, and it frees it twice in a row. */
#include "misuse.h"

#include <pthread.h>

static void *free_twice(void *block)
{
    free(block);
    free(block);
    return NULL;
}

int main(void)
{
    void *volatile block = malloc(48);
    pthread_t thread;
    announce(block);
    pthread_create(&thread, NULL, free_twice, block);
    pthread_join(thread, NULL);
    return survived();
}
