/* os/processors.h: nodes by the machine's files, or by number; and each has a page heap, and shards
 * of the span cache. */
#include "cache/upkeep.h"

#include "cache/reclaim.h"
#include "os/processors.h"
#include "slab/central_list.h"
#include "span/large.h"
#include "span/purge.h"
#include "span/span_cache.h"
#include "unit/fresh.h"

enum { CLASS = 4, MOST_FILES = 16 };

static void say(const char *path, const char *text)
{
    static char paths[MOST_FILES][80];
    static unsigned count;
    (void)snprintf(paths[count], sizeof paths[0], "/sys/devices/system/node/%s", path);
    fake_os_set_file(paths[count++], text);
}

static unsigned node_on(unsigned processor)
{
    fake_os_run_on(processor);
    return processor_node_now();
}

static unsigned group_on(unsigned processor)
{
    fake_os_run_on(processor);
    return processor_group();
}

/* Two threads to a core: the second ones have numbers behind all the first. */
static void say_two_sockets(void)
{
    say("has_cpu", "0-1\n");
    say("node0/cpulist", "0-9,20-29\n");
    say("node1/cpulist", "10-19,30-39\n");
}

fresh_test(nodes_are_those_of_the_machine)
{
    fake_os_set_processors(40);
    say_two_sockets();
    options_load(os_environment(), NULL, NULL);
    check_eq(processors_split(0, 0), 2);
    for (unsigned processor = 0; processor < 40; processor++)
        check_eq(node_on(processor), processor / 10 % 2);
    check_eq(processors_split(0, 0), 0); /* only the first call does it */
}

fresh_test(the_node_of_the_caller_is_the_first)
{
    fake_os_set_processors(40);
    say_two_sockets();
    options_load(os_environment(), NULL, NULL);
    fake_os_run_on(15);
    check_eq(processors_split(0, 0), 2);
    check_eq(node_on(15), 0);
    check_eq(node_on(5), 1);
    check_eq(node_on(PROCESSORS_MOST + 15), 0);
}

fresh_test(neighbours_may_be_in_different_nodes)
{
    fake_os_set_processors(12);
    say("has_cpu", "0,8\n"); /* as POWER numbers them */
    say("node0/cpulist", "0,2,4,6,8,10\n");
    say("node8/cpulist", "1,3,5,7,9,11\n");
    options_load(os_environment(), NULL, NULL);
    check_eq(processors_split(0, 0), 2);
    for (unsigned processor = 0; processor < 12; processor++)
        check_eq(node_on(processor), processor % 2);
}

fresh_test(nodes_without_a_processor_of_ours_do_not_count)
{
    fake_os_set_processors(10); /* such as taskset leaves */
    say("has_cpu", "0-2\n");
    say("node0/cpulist", "10-15\n");
    say("node1/cpulist", "0-4,16-23\n");
    say("node2/cpulist", "5-9,24-31\n");
    options_load(os_environment(), NULL, NULL);
    check_eq(processors_split(0, 0), 2);
    check_eq(node_on(0), 0);
    check_eq(node_on(9), 1);
    check(node_on(12) < 2);
    check_eq(processor_groups_now(), 2); /* no group spans nodes, however few cores they have */
    check(group_on(0) != group_on(9));
}

fresh_test(more_nodes_than_there_is_room_for_share)
{
    static char lists[12][8];
    char path[20];
    fake_os_set_processors(12);
    say("has_cpu", "0-11\n");
    for (unsigned node = 0; node < 12; node++) {
        (void)snprintf(path, sizeof path, "node%u/cpulist", node);
        (void)snprintf(lists[node], sizeof lists[node], "%u\n", node);
        say(path, lists[node]);
    }
    options_load(os_environment(), NULL, NULL);
    check_eq(processors_split(0, 0), NODES_MOST);
    for (unsigned processor = 0; processor < 12; processor++)
        check_eq(node_on(processor), processor % NODES_MOST);
}

fresh_test(what_cannot_be_read_is_one_node)
{
    static const char *const texts[] = {"\n", "-\n", "x", "0-99999999999999999999\n", "5-0\n"};
    for (unsigned index = 0; index < sizeof texts / sizeof *texts; index++) {
        if (fork() == 0) {
            fake_os_set_processors(12);
            say("has_cpu", texts[index]);
            options_load(os_environment(), NULL, NULL);
            check_eq(processors_split(0, 0), 1);
            check_eq(node_on(11), 0);
            _exit(0);
        }
        int status;
        check(wait(&status) > 0);
        check_eq(status, 0);
    }
}

fresh_test(each_node_that_is_asked_for_has_a_group)
{
    fake_os_set_processors(2);
    options_load(os_environment(), NULL, NULL);
    check_eq(processors_split(0, 2), 2);
    check_eq(processor_groups_now(), 2);
    check(group_on(0) != group_on(1));
}

fresh_test(where_the_kernel_names_no_processor_there_is_a_group)
{
    fake_os_set_processors(0);
    options_load(os_environment(), NULL, NULL);
    check_eq(processors_split(0, 2), 2);
    check_eq(processor_groups_now(), 1);
}

fresh_test(few_processors_are_one_node)
{
    fake_os_set_processors(GROUP_CORES);
    say("has_cpu", "0-1\n");
    say("node0/cpulist", "0-3\n");
    say("node1/cpulist", "4-7\n");
    options_load(os_environment(), NULL, NULL);
    check_eq(processors_split(0, 0), 1);
    check_eq(fake_os_file_reads(), 0);
}

fresh_test(no_file_is_opened_where_none_may_be)
{
    static char *const environment[] = {"HAKMEM_WATCH_LIMITS=0", NULL};
    fake_os_set_processors(40);
    fake_os_set_environment(environment);
    say_two_sockets();
    options_load(os_environment(), NULL, NULL);
    check_eq(processors_split(0, 0), 1);
    check_eq(fake_os_file_reads(), 0);
}

/* ---- what the nodes have ---- */

static void begin(unsigned nodes)
{
    initialise();
    fake_os_run_on(0);
    check_eq(processors_split(1, nodes), nodes);
    page_heaps_add_nodes(nodes);
    check_eq(page_heaps_now(), nodes);
}

static span_t *alloc_on(unsigned processor, size_t unit_count)
{
    bool is_zero;
    fake_os_run_on(processor);
    span_t *span = page_heap_alloc(unit_count, UNIT_SIZE, &is_zero);
    check(span != NULL);
    return span;
}

fresh_test(each_node_has_chunks_of_its_own)
{
    begin(3);
    for (unsigned processor = 0; processor < 6; processor++) {
        span_t *span = alloc_on(processor, 4);
        check(page_heap_of(span) == &page_heaps[processor % 3]);
    }
    for (unsigned node = 0; node < 3; node++)
        check_eq(page_heaps[node].mapped_units, CHUNK_UNITS);
    check_laws();
}

fresh_test(what_another_node_frees_serves_its_own_node)
{
    begin(2);
    span_t *span = alloc_on(1, 4);
    size_t first = span->first_unit;
    fake_os_run_on(0);
    page_heap_free(span, 0);
    check(alloc_on(0, 4)->first_unit != first);
    check_eq(alloc_on(1, 4)->first_unit, first);
    check_laws();
}

fresh_test(a_span_is_not_extended_into_the_heap_of_another_node)
{
    begin(2);
    span_t *span = alloc_on(0, CHUNK_UNITS);
    span_t *other = alloc_on(1, 1);
    check_eq(other->first_unit, span->first_unit + CHUNK_UNITS);
    page_heap_free(other, 1);
    check(!page_heap_extend(span, CHUNK_UNITS + 1));
    check_laws();
}

fresh_test(where_the_kernel_refuses_other_nodes_serve)
{
    bool is_zero;
    begin(2);
    size_t first = alloc_on(1, 4)->first_unit;
    fake_os_fail_always(FAKE_MAP_AT);
    check_eq(alloc_on(0, 4)->first_unit, first + 4);
    void *block; /* a slab may stand in whichever heap */
    check_eq(central_list_take(CLASS, &block + 1, 1), 1);
    check(unit_of(block) > first && unit_of(block) < first + CHUNK_UNITS);
    alloc_on(0, CHUNK_UNITS - 8 - size_classes[CLASS].unit_count);
    check(page_heap_alloc(1, UNIT_SIZE, &is_zero) == NULL);
    check_laws();
}

fresh_test(kept_large_blocks_stay_in_their_node)
{
    begin(2);
    fake_os_run_on(1);
    void *block = large_alloc(100 * KIB, BLOCK_ALIGNMENT, &(bool){false});
    check(page_heap_of(window_spans[unit_of(block)]) == &page_heaps[1]);
    fake_os_run_on(0);
    check(span_cache_give(window_spans[unit_of(block)], 0));
    check(span_cache_take(100 * KIB >> UNIT_SHIFT) == NULL);
    fake_os_run_on(1);
    check(span_cache_take(112 * KIB >> UNIT_SHIFT) == window_spans[unit_of(block)]);
    check_laws();
}

fresh_test(the_heaps_of_large_blocks_leave_half_of_the_window)
{
    bool is_zero;
    begin(2);
    size_t most = window_unit_limit / 2;
    size_t taken = 0;
    for (unsigned turn = 0; turn < 1000; turn++) {
        fake_os_run_on(turn % 2);
        if (page_heap_alloc(window_unit_limit / 100, UNIT_SIZE, &is_zero) == NULL)
            break;
        taken += window_unit_limit / 100;
    }
    check(taken <= most);
    check(taken > most / 2);
}

/* What is idle goes, wherever it is. */
fresh_test(free_pages_of_all_nodes_go_back)
{
    begin(2);
    for (unsigned processor = 0; processor < 2; processor++)
        page_heap_free(alloc_on(processor, 256 * MIB >> UNIT_SHIFT), 1);
    fake_os_run_on(0);
    for (uint64_t now_ms = 1; now_ms < 8000; now_ms += 100)
        (void)purge_idle(now_ms);
    for (unsigned number = 0; number < page_heaps_now(); number++)
        check_eq(page_heaps[number].free.dirty_units, 0);
    page_heap_free(alloc_on(1, 10), 1);
    check_eq(reclaim_all(), 10 * UNIT_SIZE);
    check_eq(page_heap_release(1, SIZE_MAX), 256 * MIB);
    check_laws();
}

fresh_test(slabs_stand_in_the_node_that_made_them)
{
    void *block;
    initialise();
    fake_os_run_on(0);
    check_eq(processors_split(2, 2), 2);
    page_heaps_add_nodes(2);
    for (unsigned processor = 0; processor < 4; processor++) {
        fake_os_run_on(processor);
        check_eq(central_list_take(CLASS, &block + 1, 1), 1);
        check_eq(owner_of_unit(unit_of(block)), processor % 2);
    }
    check_laws();
}

check_main()
