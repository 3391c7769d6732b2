/* os/meta.h: pieces are zeroed, aligned, apart from one another, and reused. */
#include "os/meta.h"

#include "base/bits.h"
#include "options/tuning.h"
#include "unit/fresh.h"

enum { LARGEST = 4096, PIECES = 4000 };

static char *pieces[PIECES];
static size_t sizes[PIECES];

static size_t rounded(size_t size)
{
    return size <= 128 ? 128 : power_of_two_at_least(size);
}

static void check_piece_is_fresh(const char *piece, size_t size)
{
    check(piece != NULL);
    check(is_aligned(piece, rounded(size)));
    for (size_t at = 0; at < rounded(size); at++)
        check_eq(piece[at], 0);
}

fresh_test(every_size_gives_a_zeroed_and_aligned_piece)
{
    for (size_t size = 1; size <= LARGEST; size++) {
        char *piece = meta_alloc(size);
        check_piece_is_fresh(piece, size);
        memset(piece, 0xff, rounded(size));
        if (size % 3 != 0)
            meta_free(piece, size);
    }
}

fresh_test(a_returned_piece_comes_back_and_is_zero_again)
{
    char *piece = meta_alloc(200);
    memset(piece, 0xff, 256);
    meta_free(piece, 200);
    size_t before = meta_size();
    char *again = meta_alloc(256);
    check(again == piece);
    check_piece_is_fresh(again, 256);
    check_eq(meta_size(), before);
}

fresh_test(pieces_never_overlap)
{
    uint64_t state = check_seed(2);
    for (unsigned step = 0; step < 40000; step++) {
        size_t index = next_random(&state) % PIECES;
        if (pieces[index] != NULL) {
            for (size_t at = 0; at < sizes[index]; at++)
                check_eq(pieces[index][at], (char)index);
            meta_free(pieces[index], sizes[index]);
            pieces[index] = NULL;
        } else {
            sizes[index] = 1 + next_random(&state) % (next_random(&state) % 8 ? 300 : LARGEST);
            pieces[index] = meta_alloc(sizes[index]);
            check_piece_is_fresh(pieces[index], sizes[index]);
            memset(pieces[index], (int)index, sizes[index]);
        }
    }
}

fresh_test(pages_lose_their_memory_when_many_are_idle)
{
    for (size_t index = 0; index < PIECES; index++) {
        pieces[index] = meta_alloc(LARGEST / (index % 2 + 1));
        memset(pieces[index], 0xff, LARGEST / (index % 2 + 1));
    }
    size_t most = meta_touched_size();
    for (size_t index = 0; index < PIECES / 8; index++)
        meta_free(pieces[index], LARGEST / (index % 2 + 1));
    check_eq(fake_os_count(FAKE_PURGE), 0); /* few beside those in use */
    for (size_t index = PIECES / 8; index < PIECES; index++)
        meta_free(pieces[index], LARGEST / (index % 2 + 1));
    check_eq(most - meta_touched_size(), fake_os_purged_bytes());
    check(meta_touched_size() < META_IDLE + meta_size() / 32);
    check(fake_os_count(FAKE_PURGE) <= meta_size() / META_CHUNK * 4);
    check_eq(pieces[1][0], 0); /* a late reader */
    size_t before = meta_size();
    for (size_t index = 0; index < PIECES; index++)
        check_piece_is_fresh(meta_alloc(LARGEST / (index % 2 + 1)), LARGEST / (index % 2 + 1));
    check_eq(meta_size(), before);
    check_eq(meta_touched_size(), most);
}

fresh_test(pages_that_the_kernel_does_not_take_serve_again)
{
    fake_os_fail_always(FAKE_PURGE);
    for (unsigned round = 0; round < 2; round++) {
        for (size_t index = 0; index < PIECES; index++) {
            pieces[index] = meta_alloc(LARGEST);
            check_piece_is_fresh(pieces[index], LARGEST);
            memset(pieces[index], 0xff, LARGEST);
        }
        for (size_t index = 0; index < PIECES; index++)
            meta_free(pieces[index], LARGEST);
    }
    check(fake_os_count(FAKE_PURGE) > 0);
    check_eq(fake_os_purged_bytes(), 0);
}

fresh_test(nothing_is_lost_when_the_kernel_refuses)
{
    fake_os_fail_always(FAKE_MAP);
    check(meta_alloc(64) == NULL);
    check_eq(meta_size(), 0);
    fake_os_fail_never();
    size_t first = 0;
    while (meta_alloc(LARGEST) != NULL) {
        if (first++ == 0)
            fake_os_fail_always(FAKE_MAP);
    }
    check_eq((first + 1) * LARGEST, meta_size()); /* one describes the others */
    fake_os_fail_never();
    check(meta_alloc(LARGEST) != NULL);
}

fresh_test(every_page_size_serves)
{
    for (size_t page = 4 * KIB; page <= 64 * KIB; page *= 4) {
        fake_os_set_page_size(page);
        size_t before = fake_os_count(FAKE_MAP);
        while (fake_os_count(FAKE_MAP) < before + 2)
            check_piece_is_fresh(meta_alloc(LARGEST), LARGEST);
    }
}

fresh_test(what_was_not_touched_is_not_counted_as_such)
{
    check_eq(meta_touched_size(), 0);
    (void)meta_alloc(64);
    check_eq(meta_touched_size(), 8 * KIB); /* one describes the pages */
    char *piece = meta_alloc(LARGEST);
    check_eq(meta_touched_size(), 12 * KIB);
    meta_free(piece, LARGEST); /* it still holds memory */
    check_eq(meta_touched_size(), 12 * KIB);
    check(meta_size() > 12 * KIB);
    while (meta_touched_size() < meta_size())
        (void)meta_alloc(LARGEST);
    check_eq(meta_size(), META_CHUNK);
    (void)meta_alloc(LARGEST);
    check_eq(meta_touched_size(), META_CHUNK + 2 * LARGEST);
}

static void ask_for_too_much(void)
{
    (void)meta_alloc(128 * KIB);
}

test(a_piece_that_is_too_large_is_a_broken_law)
{
    char words[256];
    check_eq(fresh_status(ask_for_too_much, words, sizeof words), FAKE_ABORT_STATUS);
    check(strstr(words, "hakmem: broken law at ") == words);
}

static void *alloc_and_free(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument;
    unsigned char *mine[64] = {NULL};
    for (unsigned step = 0; step < 20000; step++) {
        size_t index = next_random(&state) % 64;
        size_t size = (size_t)16 << (index % 5);
        if (mine[index] == NULL) {
            mine[index] = meta_alloc(size);
            memset(mine[index], (int)index, size);
        } else {
            check_eq(mine[index][0], index);
            check_eq(mine[index][size - 1], index);
            meta_free(mine[index], size);
            mine[index] = NULL;
        }
    }
    return NULL;
}

fresh_test(threads_get_pieces_of_their_own)
{
    run_threads(4, alloc_and_free);
}

fresh_test(memory_that_was_added_serves_when_the_kernel_refuses)
{
    char *more = (char *)align_up((uintptr_t)os_map(72 * KIB), UNIT_SIZE);
    check(more != NULL && !meta_is_short());
    memset(more, 0xff, 64 * KIB);
    check(meta_alloc(LARGEST) != NULL);
    fake_os_fail_always(FAKE_MAP);
    size_t before = meta_size();
    while (meta_alloc(LARGEST) != NULL) {
    }
    check(meta_is_short());
    meta_add(more, 64 * KIB);
    check(!meta_is_short());
    check_eq(meta_size(), before + 64 * KIB);
    for (unsigned index = 0; index < 8; index++) { /* a page of each unit describes the other */
        char *piece = meta_alloc(LARGEST);
        check_piece_is_fresh(piece, LARGEST);
        check(piece >= more && piece < more + 64 * KIB);
        meta_free(piece, LARGEST);
        check(meta_alloc(LARGEST) == piece);
    }
    check(meta_alloc(LARGEST) == NULL);
}

/* Blocks of the program lay there, and its hooks would not learn that the pages are gone. */
fresh_test(pages_of_added_memory_stay)
{
    char *more = (char *)align_up((uintptr_t)os_map(72 * KIB), UNIT_SIZE);
    unsigned count = 0;
    while (count < PIECES / 2)
        check((pieces[count++] = meta_alloc(LARGEST)) != NULL);
    fake_os_fail_always(FAKE_MAP);
    while ((pieces[count] = meta_alloc(LARGEST)) != NULL)
        count++;
    meta_add(more, 64 * KIB);
    while ((pieces[count] = meta_alloc(LARGEST)) != NULL)
        memset(pieces[count++], 0xff, LARGEST);
    while (count-- > 0)
        meta_free(pieces[count], LARGEST);
    check(fake_os_purged_bytes() > META_IDLE);
    for (size_t at = LARGEST; at < UNIT_SIZE; at++)
        check_eq((unsigned char)more[at], 0xff);
}

check_main()
