/* Many blocks of one size, a little above a size class. */
#include <stdlib.h>
#include <string.h>

int main(void)
{
    static void *blocks[8000];
    for (unsigned index = 0; index < 8000; index++) {
        if ((blocks[index] = malloc(1030)) == NULL)
            return 1;
        memset(blocks[index], 1, 1030);
    }
    for (unsigned index = 0; index < 8000; index++)
        free(blocks[index]);
    return 0;
}
