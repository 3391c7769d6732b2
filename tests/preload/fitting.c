/* Many blocks, of sizes that get classes of their own; in the second half other sizes are asked
 * for, so that some of these classes are withdrawn. One thread, and the same in each run. */
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 12000, PHASES = 2, SIZES = 4 };

static const size_t sizes[PHASES][SIZES] = {{1030, 1030, 600, 5200}, {1150, 1150, 1150, 330}};

int main(void)
{
    static void *blocks[BLOCKS];
    unsigned draw = 1;
    for (unsigned phase = 0; phase < PHASES; phase++) {
        for (unsigned step = 0; step < 4 * BLOCKS; step++) {
            draw = draw * 1103515245u + 12345u;
            const unsigned place = draw >> 8 & 16383;
            const size_t size = sizes[phase][draw >> 24 & (SIZES - 1)];
            if (place >= BLOCKS)
                continue;
            free(blocks[place]);
            if ((blocks[place] = malloc(size)) == NULL)
                return 1;
            memset(blocks[place], 1, size);
        }
    }
    for (unsigned place = 0; place < BLOCKS; place++)
        free(blocks[place]);
    return 0;
}
