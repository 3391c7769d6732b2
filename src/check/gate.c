/* The gate. See gate.h. */
#include "check/gate.h"

#include "os/fatal.h"
#include "slab/block_record.h"
#include "slab/slab.h"
#include "check/zero_blocks.h"
#include "large/huge.h"
#include "large/huge_history.h"

static gate_t look_in_slab(slab_t *slab, const void *ptr)
{
    gate_t gate = {
        .class = slab->class, .size = size_classes[slab->class].size, .span = &slab->span};
    slab_verdict_t state = slab_check(slab, ptr);
    if (state == NOT_A_BLOCK)
        gate.verdict = VERDICT_INSIDE;
    else if (state == ALREADY_FREE ||
             (frees_are_checked() && slab->span.heap == 0 && !record_class(block_record(ptr))))
        gate.verdict = VERDICT_FREED;
    else
        gate.verdict = VERDICT_SMALL;
    return gate;
}

static gate_t look_outside(const void *ptr)
{
    static const verdict_t verdicts[] = {[HUGE_NONE] = VERDICT_FOREIGN,
                                         [HUGE_INSIDE] = VERDICT_INSIDE,
                                         [HUGE_CACHED] = VERDICT_FREED,
                                         [HUGE_LIVE] = VERDICT_HUGE};
    gate_t gate = {.size = 0};
    if (zero_blocks_have(ptr))
        gate.verdict = zero_block_is_used(ptr) ? VERDICT_EMPTY : VERDICT_FREED;
    else
        gate.verdict = verdicts[huge_find(ptr, &gate.size)];
    return gate;
}

static gate_t look_in_window(const void *ptr)
{
    span_t *span = span_of(ptr);
    if (span == NULL) {
        gate_t gate = look_outside(ptr); /* part of a chunk may never have been mapped for us */
        return gate.verdict != VERDICT_FOREIGN ? gate : (gate_t){.verdict = VERDICT_FREE_MEMORY};
    }
    if (span_state(span) == SPAN_SLAB)
        return look_in_slab((slab_t *)span, ptr);
    bool is_small = span->sample != SAMPLE_NONE && span->sample != SAMPLE_LARGE;
    gate_t gate = {.verdict = VERDICT_LARGE,
                   .size = is_small ? size_classes[span->sample].size : span_size(span),
                   .span = span};
    if (ptr != span_start(span))
        gate.verdict = VERDICT_INSIDE;
    else if (span_state(span) == SPAN_CACHED)
        gate.verdict = VERDICT_FREED;
    return gate;
}

gate_t gate_look(const void *ptr)
{
    return window_has(ptr) ? look_in_window(ptr) : look_outside(ptr);
}

_Noreturn void gate_refuse(const gate_t *gate, const void *ptr, const char *verb)
{
    size_t size;
    bool is_noted = huge_history_find(ptr, &size);
    switch (gate->verdict) {
    case VERDICT_FREED:
        fatal_already_free(verb, ptr, gate->size);
    case VERDICT_INSIDE:
        fatal_inside_block(verb, ptr, gate->size);
    case VERDICT_FREE_MEMORY:
        if (!is_noted)
            fatal_free_memory(verb, ptr);
        break;
    default:
        break;
    }
    if (is_noted) /* the block has become free pages, or its mapping is gone */
        fatal_already_free(verb, ptr, size);
    fatal_not_ours(verb, ptr);
}
