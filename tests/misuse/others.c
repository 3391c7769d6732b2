/* Wild pointers, blocks that are used after they were freed, and bytes that are nobody's to
 * write. */
#include "misuse.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* The next slot of the slab was never handed out. */
misuse(never_allocated)
{
    char *block = malloc(60);
    announce(block + 64);
    free(block + 64);
}

/* A slot of the slab that was never handed out, far from those that were; the program then ends. */
misuse(never_allocated_far)
{
    char *block = malloc(10);
    announce(block + 4 * 4096);
    free(block + 4 * 4096);
    say("survived\n");
    exit(0);
}

/* A local variable is freed. */
misuse(stack)
{
    char local[64];
    announce(local);
    free(local);
}

static char data[64];

/* A static variable is freed. */
misuse(static_data)
{
    announce(data);
    free(data);
}

/* A function is freed. */
misuse(program_text)
{
    announce((void *)program_text);
    free((void *)program_text);
}

static uint64_t forged[32] __attribute__((aligned(64)));

/* A forged header in front of static data makes nothing of it. */
misuse(fake_chunk)
{
    forged[1] = 0x41;
    forged[9] = 0x41;
    announce(&forged[2]);
    free(&forged[2]);
}

/* A small number is freed. */
misuse(wild_low)
{
    announce((void *)0x10);
    free((void *)0x10);
}

/* An address where nothing is mapped is freed. */
misuse(wild_middle)
{
    announce((void *)0x123456789a0);
    free((void *)0x123456789a0);
}

/* A number that can be no address is freed. */
misuse(wild_noncanonical)
{
    announce((void *)0xdeadbeefdeadbee0);
    free((void *)0xdeadbeefdeadbee0);
}

/* The highest address is freed. */
misuse(wild_top)
{
    announce((void *)0xfffffffffffffff0);
    free((void *)0xfffffffffffffff0);
}

/* Memory of the program's own mmap is freed. */
misuse(foreign_mapping)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    void *mapping = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, flags, -1, 0);
    announce(mapping);
    free(mapping);
}

/* A freed block is grown. */
misuse(realloc_freed)
{
    char *block = malloc(48);
    announce(block);
    free(block);
    realloc(block, 5000);
}

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

/* A freed large block is grown. */
misuse(realloc_freed_large)
{
    char *block = malloc(262144);
    announce(block);
    free(block);
    realloc(block, 1 << 20);
}

/* A pointer into the middle of a tiny block is grown. */
misuse(realloc_interior)
{
    char *block = malloc(1024);
    announce(block + 512);
    realloc(block + 512, 5000);
}

/* A pointer into the middle of a large block is grown. */
misuse(realloc_interior_large)
{
    char *block = malloc(262144);
    announce(block + 4096);
    realloc(block + 4096, 1 << 20);
}

/* A local variable is grown. */
misuse(realloc_stack)
{
    char local[64];
    announce(local);
    realloc(local, 5000);
}

/* An address where nothing is mapped is grown. */
misuse(realloc_wild)
{
    announce((void *)0x123456789a0);
    realloc((void *)0x123456789a0, 5000);
}

/* The size of a freed block is asked for. */
misuse(usable_size_freed)
{
    char *block = malloc(48);
    announce(block);
    free(block);
    malloc_usable_size(block);
}

/* The size of a freed large block is asked for. */
misuse(usable_size_freed_large)
{
    char *block = malloc(262144);
    announce(block);
    free(block);
    malloc_usable_size(block);
}

/* The size of a pointer into a block is asked for. */
misuse(usable_size_interior)
{
    char *block = malloc(1024);
    announce(block + 512);
    malloc_usable_size(block + 512);
}

/* The size of a local variable is asked for. */
misuse(usable_size_stack)
{
    char local[64];
    announce(local);
    malloc_usable_size(local);
}

/* A byte behind the end of the request is written. */
misuse(write_behind_end)
{
    char *block = malloc(20);
    announce(block);
    block[20] = 'x';
    free(block);
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

/* A byte behind the end is written after realloc has made the block shorter in its place. */
misuse(write_behind_realloc)
{
    char *block = realloc(malloc(100), 90);
    announce(block);
    block[90] = 'x';
    free(block);
}

void *hakmem_malloc_group(unsigned group, size_t size) __attribute__((weak));

/* A byte behind the end of a request for a group is written. */
misuse(write_behind_in_group)
{
    char *block = hakmem_malloc_group ? hakmem_malloc_group(2, 20) : malloc(20);
    announce(block);
    block[20] = 'x';
    free(block);
}

/* A freed block is written, and handed out again. */
misuse(write_after_free)
{
    char *block = malloc(100);
    announce(block);
    free(block);
    block[50] = 'x';
    for (int i = 0; i < 2000; i++) malloc(100);
}

/* A byte behind the end of a block is written; the program ends without freeing it. */
misuse(write_behind_until_exit)
{
    char *block = malloc(20);
    announce(block);
    block[20] = 'x';
    say("survived\n");
    exit(0);
}

/* A freed block is written, and handed out to nobody before the program ends. */
misuse(write_after_free_until_exit)
{
    char *block = malloc(100);
    announce(block);
    free(block);
    block[50] = 'x';
    say("survived\n");
    exit(0);
}

/* A block of no bytes is written. */
misuse(write_empty)
{
    char *block = malloc(0);
    announce(block);
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
