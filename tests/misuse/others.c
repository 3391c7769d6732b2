/* Wild pointers, blocks that are used after they were freed, and bytes that are nobody's to
 * write. */
#include "misuse.h"

#include <signal.h>
#include <sys/wait.h>

static void free_this(void *ptr)
{
    announce(ptr);
    free(ptr);
}

static void grow_this(void *ptr, size_t size)
{
    announce(ptr);
    realloc(ptr, size);
}

static void *freed(void *block)
{
    free(block);
    return block;
}

static void measure_this(void *ptr)
{
    announce(ptr);
    malloc_usable_size(ptr);
}

static void write_into(char *block, size_t offset)
{
    announce(block);
    block[offset] = 'x';
    free(block);
}

static void write_after_free_of(char *block, size_t offset)
{
    announce(block);
    free(block);
    block[offset] = 'x';
}

static void *foreign(void)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    return mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, flags, -1, 0);
}

static char data[64];
static uint64_t forged[32] __attribute__((aligned(64))) = {[1] = 0x41, [9] = 0x41};
static void *const nowhere = (void *)0x123456789a0;

void *hakmem_malloc_group(unsigned group, size_t size) __attribute__((weak));

/* clang-format off */

/* The next slot of the slab was never handed out. */
misuse(never_allocated) { free_this((char *)malloc(60) + 64); }
/* A slot of the slab that was never handed out, far from those that were; the program then ends. */
misuse(never_allocated_far) { free_this((char *)malloc(10) + 4 * 4096); end_at_once(); }
/* A local variable is freed. */
misuse(stack) { free_this((char[64]){0}); }
/* A static variable is freed. */
misuse(static_data) { free_this(data); }
/* A function is freed. */
misuse(program_text) { free_this((void *)program_text); }
/* A forged header in front of static data makes nothing of it. */
misuse(fake_chunk) { free_this(&forged[2]); }
/* A small number is freed. */
misuse(wild_low) { free_this((void *)0x10); }
/* An address where nothing is mapped is freed. */
misuse(wild_middle) { free_this(nowhere); }
/* A number that can be no address is freed. */
misuse(wild_noncanonical) { free_this((void *)0xdeadbeefdeadbee0); }
/* The highest address is freed. */
misuse(wild_top) { free_this((void *)0xfffffffffffffff0); }
/* Memory of the program's own mmap is freed. */
misuse(foreign_mapping) { free_this(foreign()); }
/* A freed block is grown. */
misuse(realloc_freed) { grow_this(freed(malloc(48)), 5000); }
/* A freed large block is grown. */
misuse(realloc_freed_large) { grow_this(freed(malloc(262144)), 1 << 20); }
/* A pointer into the middle of a tiny block is grown. */
misuse(realloc_interior) { grow_this((char *)malloc(1024) + 512, 5000); }
/* A pointer into the middle of a large block is grown. */
misuse(realloc_interior_large) { grow_this((char *)malloc(262144) + 4096, 1 << 20); }
/* A local variable is grown. */
misuse(realloc_stack) { grow_this((char[64]){0}, 5000); }
/* An address where nothing is mapped is grown. */
misuse(realloc_wild) { grow_this(nowhere, 5000); }
/* The size of a freed block is asked for. */
misuse(usable_size_freed) { measure_this(freed(malloc(48))); }
/* The size of a freed large block is asked for. */
misuse(usable_size_freed_large) { measure_this(freed(malloc(262144))); }
/* The size of a pointer into a block is asked for. */
misuse(usable_size_interior) { measure_this((char *)malloc(1024) + 512); }
/* The size of a local variable is asked for. */
misuse(usable_size_stack) { measure_this((char[64]){0}); }
/* A byte behind the end of the request is written. */
misuse(write_behind_end) { write_into(malloc(20), 20); }
/* A byte behind the end is written after realloc has made the block shorter in its place. */
misuse(write_behind_realloc) { write_into(realloc(malloc(100), 90), 90); }
/* A freed block is written, and handed out to nobody before the program ends. */
misuse(write_after_free_until_exit) { write_after_free_of(malloc(100), 50); end_at_once(); }

/* clang-format on */

/* A freed block is grown after another was freed. */
misuse(realloc_freed_later)
{
    char *block = malloc(48);
    char *other = malloc(48);
    announce(block);
    free(block);
    free(other);
    realloc(block, 5000);
}

static int is_stopped(size_t size)
{
    char *block = malloc(size);
    pid_t child = fork();
    if (child == 0) {
        close(2);
        block[size] = 'x';
        free(block);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

/* A byte behind the end of the request is written, of blocks of many sizes; each in a child. */
misuse(write_behind_any)
{
    char *block = malloc(32752);
    announce(block);
    for (size_t size = 1; size < 32768; size += size < 512 ? 1 : 16 * (size / 256)) {
        if (!is_stopped(size)) return;
    }
    block[32752] = 'x';
    free(block);
}

/* A byte behind the end of a request for a group is written. */
misuse(write_behind_in_group)
{
    write_into(hakmem_malloc_group ? hakmem_malloc_group(2, 20) : malloc(20), 20);
}

/* A freed block is written, and handed out again. */
misuse(write_after_free)
{
    write_after_free_of(malloc(100), 50);
    for (int i = 0; i < 2000; i++) malloc(100);
}

/* A byte behind the end of a block is written; the program ends without freeing it. */
misuse(write_behind_until_exit)
{
    char *block = announce(malloc(20));
    block[20] = 'x';
    end_at_once();
}

/* A block of no bytes is written. */
misuse(write_empty)
{
    char *block = announce(malloc(0));
    *block = 'x';
}

/* No misuse: everything that the others misuse, used well. Must end silently with status 0. */
misuse(no_misuse)
{
    char *blocks[300];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 300; i++) blocks[i] = malloc((size_t)(i * i));
        for (int i = 0; i < 300; i++) blocks[i] = realloc(blocks[i], (size_t)(i * i * 2 + 1));
        for (int i = 0; i < 300; i++) malloc_usable_size(blocks[i]);
        for (int i = 0; i < 300; i++) free(blocks[i]);
        char *huge = malloc(8 << 20);
        realloc(realloc(huge, 16 << 20), 0);
        char *aligned = memalign(4096, 4096);
        free(aligned);
        free(NULL);
    }
    announce(blocks);
}
