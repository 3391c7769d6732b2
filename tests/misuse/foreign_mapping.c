/* Memory of the program's own mmap is freed. */
#include "misuse.h"

int main(void)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    void *mapping = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, flags, -1, 0);
    announce(mapping);
    free(mapping);
    return survived();
}
