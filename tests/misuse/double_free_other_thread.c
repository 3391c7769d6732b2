/* Another thread has freed the block already. */
#include "misuse.h"

#include <pthread.h>

static void *free_there(void *block)
{
    free(block);
    return NULL;
}

int main(void)
{
    char *block = malloc(48);
    pthread_t thread;
    announce(block);
    pthread_create(&thread, NULL, free_there, block);
    pthread_join(thread, NULL);
    free(block);
    return survived();
}
