/* HAKMEM for one library, while the program keeps its own malloc.
 *
 *   cc prefixed.c -lhakmem_prefixed -pthread -o prefixed && ./prefixed */
#include <hakmem_prefixed.h>

#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    void *theirs = malloc(100);  /* the C library's, or whatever the program has */
    void *ours = hk_malloc(100); /* HAKMEM's */
    if (theirs == NULL || ours == NULL)
        return 1;
    printf("malloc: %s, hk_malloc: %s\n", hakmem_owns(theirs) ? "HAKMEM" : "another",
           hakmem_owns(ours) ? "HAKMEM" : "another");
    free(theirs);
    hk_free(ours);
    return 0;
}
