/* Two threads, one after the other, free a block of a third. */
#include "misuse.h"

#include <pthread.h>

static void *free_there(void *block)
{
    free(block);
    return NULL;
}

int main(void)
{
    char *block = malloc(1024);
    announce(block);
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, free_there, block);
        pthread_join(thread, NULL);
    }
    return survived();
}
