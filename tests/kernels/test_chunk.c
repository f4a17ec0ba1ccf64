// test_chunk.c: memory cut from chunks: pieces do not overlap, freed pieces are merged and reused,
// and their pages and chunks go back to the system.
#include "support/check.h"

#include "machine/chunk.h"

#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

static int is_filled(const unsigned char *p, uint64_t bytes, unsigned char with) {
    for (uint64_t i = 0; i < bytes; i++)
        if (p[i] != with) return 0;
    return 1;
}

static void test_whole(void **state) {
    (void)state;
    struct rlhf__chunk *all = NULL;
    assert_null(rlhf__chunk_cut(&all, RLHF__CHUNK_BYTES + 64));
    assert_null(all);
    char *a = rlhf__chunk_cut(&all, RLHF__CHUNK_BYTES), *b = rlhf__chunk_cut(&all, 64);
    assert_non_null(a);
    assert_non_null(b);
    assert_true(b < a || b >= a + RLHF__CHUNK_BYTES);
    assert_int_equal((uintptr_t)a % (2 * MIB), 0);
    rlhf__chunk_return(&all, a, RLHF__CHUNK_BYTES);
    assert_non_null(all);
    rlhf__chunk_return(&all, b, 64);
    assert_null(all);
}

// Three adjacent pieces are freed in any order. They become one range again, which a single piece
// can fill.
static void test_joined(void **state) {
    (void)state;
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const uint64_t bytes = 3 * MIB + 64;
    struct rlhf__chunk *all = NULL;
    char *first = rlhf__chunk_cut(&all, 64);
    for (int o = 0; o < 6; o++) {
        char *p[3];
        for (int i = 0; i < 3; i++)
            p[i] = rlhf__chunk_cut(&all, bytes);
        assert_ptr_equal(p[1], p[0] + bytes);
        assert_ptr_equal(p[2], p[1] + bytes);
        char *rest = rlhf__chunk_cut(&all, RLHF__CHUNK_BYTES - 64 - 3 * bytes);
        assert_ptr_equal(rest, p[2] + bytes);
        for (int i = 0; i < 3; i++)
            rlhf__chunk_return(&all, p[orders[o][i]], bytes);
        char *whole = rlhf__chunk_cut(&all, 3 * bytes);
        assert_ptr_equal(whole, p[0]);
        rlhf__chunk_return(&all, whole, 3 * bytes);
        rlhf__chunk_return(&all, rest, RLHF__CHUNK_BYTES - 64 - 3 * bytes);
    }
    rlhf__chunk_return(&all, first, 64);
    assert_null(all);
}

// The system has taken back unused pages of 2 MiB, so they read as zero. The data around them
// stays.
static void test_pages(void **state) {
    (void)state;
    struct rlhf__chunk *all = NULL;
    const uint64_t side = MIB, inner = 10 * MIB;
    unsigned char *left = rlhf__chunk_cut(&all, side), *p = rlhf__chunk_cut(&all, inner);
    unsigned char *q = rlhf__chunk_cut(&all, inner), *right = rlhf__chunk_cut(&all, side);
    memset(left, 1, side);
    memset(p, 2, inner);
    memset(q, 3, inner);
    memset(right, 4, side);
    rlhf__chunk_return(&all, p, inner);
    rlhf__chunk_return(&all, q, inner);
    p = rlhf__chunk_cut(&all, 2 * inner);
    assert_ptr_equal(p, left + side);
    // The page in which `left` ends and the page in which `right` begins are only partly free, so
    // they stay.
    assert_true(is_filled(p + MIB, 2 * inner - 2 * MIB, 0));
    assert_true(is_filled(left, side, 1));
    assert_true(is_filled(right, side, 4));
    rlhf__chunk_return(&all, left, side);
    rlhf__chunk_return(&all, p, 2 * inner);
    rlhf__chunk_return(&all, right, side);
    assert_null(all);
}

// A piece is placed in the smallest free range that can hold it. So large ranges stay free for
// large pieces, and less memory of the chunks is unused.
static void test_closest(void **state) {
    (void)state;
    struct rlhf__chunk *all = NULL;
    char *large = rlhf__chunk_cut(&all, 8 * MIB), *a = rlhf__chunk_cut(&all, 64);
    char *small = rlhf__chunk_cut(&all, 3 * MIB), *b = rlhf__chunk_cut(&all, 64);
    char *rest = rlhf__chunk_cut(&all, RLHF__CHUNK_BYTES - 11 * MIB - 128);
    char *other = rlhf__chunk_cut(&all, 20 * MIB); // a newer chunk, with 12 MiB left
    rlhf__chunk_return(&all, large, 8 * MIB);
    rlhf__chunk_return(&all, small, 3 * MIB);
    char *p = rlhf__chunk_cut(&all, 3 * MIB - 64), *q = rlhf__chunk_cut(&all, 7 * MIB);
    assert_ptr_equal(p, small);
    assert_ptr_equal(q, large);
    rlhf__chunk_return(&all, p, 3 * MIB - 64);
    rlhf__chunk_return(&all, q, 7 * MIB);
    rlhf__chunk_return(&all, other, 20 * MIB);
    rlhf__chunk_return(&all, rest, RLHF__CHUNK_BYTES - 11 * MIB - 128);
    rlhf__chunk_return(&all, a, 64);
    rlhf__chunk_return(&all, b, 64);
    assert_null(all);
}

// Allocates and frees pieces of many sizes; each keeps its contents.
static void test_many(void **state) {
    (void)state;
    enum { PIECES = 48, TURNS = 1500 };
    struct {
        unsigned char *p;
        uint64_t bytes;
    } piece[PIECES] = {{NULL, 0}};
    struct rlhf__chunk *all = NULL;
    uint32_t random = 7;
    for (int t = 0; t < TURNS + PIECES; t++) {
        random = random * 1664525u + 1013904223u;
        const int i = t < TURNS ? (int)(random >> 20) % PIECES : t - TURNS;
        if (piece[i].p) {
            assert_true(is_filled(piece[i].p, 64, (unsigned char)i));
            assert_true(is_filled(piece[i].p + piece[i].bytes - 64, 64, (unsigned char)i));
            rlhf__chunk_return(&all, piece[i].p, piece[i].bytes);
            piece[i].p = NULL;
        } else if (t < TURNS) {
            piece[i].bytes = ((uint64_t)1 << random % 17 << 6) + 64 * (random >> 28);
            piece[i].p = rlhf__chunk_cut(&all, piece[i].bytes);
            assert_non_null(piece[i].p);
            assert_int_equal((uintptr_t)piece[i].p % 64, 0);
            memset(piece[i].p, i, 64);
            memset(piece[i].p + piece[i].bytes - 64, i, 64);
        }
    }
    assert_null(all);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_whole), cmocka_unit_test(test_joined),
                                       cmocka_unit_test(test_pages), cmocka_unit_test(test_closest),
                                       cmocka_unit_test(test_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
