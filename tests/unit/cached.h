/* A block by way of the calling thread's cache, as entry/slow.c arranges it: for tests of cache/.
 * Included by one program each, so the bodies are here. */
#ifndef HAKMEM_TESTS_CACHED_H
#define HAKMEM_TESTS_CACHED_H

#include "upkeep/upkeep.h"
#include "unit/fresh.h"

/* Blocks that went past the bin, either way. */
static _Thread_local unsigned long miss_count;

__attribute__((unused)) static void *cached_alloc(unsigned class)
{
    thread_cache_t *cache = thread_cache_provide();
    void *block = bin_pop(&thread_bins[class]);
    if (block != NULL)
        return block;
    miss_count++;
    block = thread_cache_refill(cache, class);
    upkeep_miss(cache);
    return block;
}

__attribute__((unused)) static void cached_free(unsigned class, void *block)
{
    thread_cache_t *cache = thread_cache_provide();
    if (bin_push(&thread_bins[class], block))
        return;
    miss_count++;
    thread_cache_flush(cache, class, block);
    upkeep_miss(cache);
}

/* The law of the blocks of a class: each is in the slabs, in the depot, in a bin, or with the
 * program. Only while no other thread is at work. */
__attribute__((unused)) static void check_conserved(unsigned class, size_t with_program)
{
    check_laws();
    central_statistics_t central = central_list_statistics(class);
    check_eq(central.block_count, central.free_count + depot_block_count(class) +
                                      thread_caches_block_count(class) + with_program);
}

/* Runs `body` in a child of fork, which has the caller as its one thread, to its good end. */
__attribute__((unused)) static void in_child(void (*body)(void))
{
    thread_caches_at_fork(FORK_PREPARE);
    pid_t child = fork();
    check(child >= 0);
    thread_caches_at_fork(child == 0 ? FORK_CHILD : FORK_PARENT);
    if (child == 0) {
        body();
        _exit(0);
    }
    int status = 0;
    check_eq(waitpid(child, &status, 0), child);
    check_eq(status, 0);
}

#endif
