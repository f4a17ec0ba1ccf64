// test_copy.c: the growth rule of base.h. Readers and writers that know one, two or three fields of
// a struct are combined in every way, in both directions.
#include "support/check.h"

#include <rlhf/base.h>

#include <string.h>

struct grown {
    uint32_t size, first;
    uint64_t second, third;
};
enum { VERSIONS = 3 };
static const uint32_t size_of[VERSIONS] = {RLHF_SIZE_TO(struct grown, first),
                                           RLHF_SIZE_TO(struct grown, second),
                                           RLHF_SIZE_TO(struct grown, third)};

// A struct of this version with all of its fields set, in memory of exactly its length.
static void *make(int version, unsigned char byte) {
    void *p = test_malloc(size_of[version]);
    memset(p, byte, size_of[version]);
    memcpy(p, &size_of[version], sizeof(uint32_t));
    return p;
}

static void every_pair_reads(void **state) {
    (void)state;
    for (int writer = 0; writer < VERSIONS; writer++)
        for (int reader = 0; reader < VERSIONS; reader++) {
            unsigned char *from = make(writer, 7), *to = make(reader, 9);
            uint32_t own = size_of[reader], common = own < size_of[writer] ? own : size_of[writer];
            rlhf_status st = rlhf_copy_in(to, own, from, size_of[0]);
            assert_int_equal(st, writer > reader ? RLHF_E_UNSUPPORTED : RLHF_OK);
            for (uint32_t i = 0; i < own; i++)
                assert_int_equal(to[i], st == RLHF_OK && i < common ? from[i] : 0);
            memset(from + common, 0,
                   size_of[writer] - common); // fields that the reader lacks are not set
            assert_int_equal(rlhf_copy_in(to, own, from, size_of[0]), RLHF_OK);
            assert_memory_equal(to, from, common);
            test_free(from);
            test_free(to);
        }
}

static void every_pair_is_answered(void **state) {
    (void)state;
    for (int asker = 0; asker < VERSIONS; asker++)
        for (int side = 0; side < VERSIONS; side++) {
            unsigned char *to = make(asker, 9), *from = make(side, 7);
            uint32_t own = size_of[side], room = size_of[asker], size;
            if (own > room) { // a field that the caller lacks is not dropped
                unsigned char *before = make(asker, 9);
                assert_int_equal(rlhf_copy_out(to, from, own, size_of[0]), RLHF_E_UNSUPPORTED);
                assert_memory_equal(to, before, room);
                test_free(before);
                memset(from + room, 0, own - room);
            }
            assert_int_equal(rlhf_copy_out(to, from, own, size_of[0]), RLHF_OK);
            memcpy(&size, to, sizeof size);
            assert_int_equal(size, room); // the caller's size stays
            for (uint32_t i = sizeof size; i < room; i++)
                assert_int_equal(to[i], i < own ? 7 : 0);
            test_free(from);
            test_free(to);
        }
}

static void garbage_is_refused(void **state) {
    (void)state;
    struct grown *to = make(2, 9), *from = make(2, 1);
    const uint32_t wrong[] = {0, 1, size_of[0] - 1, RLHF_STRUCT_MAX + 1, UINT32_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        from->size = wrong[i];
        assert_int_equal(rlhf_copy_in(to, sizeof *to, from, size_of[0]), RLHF_E_INVALID);
        assert_int_equal(to->size + to->first, 0);
        assert_int_equal(rlhf_copy_out(from, to, sizeof *to, size_of[0]), RLHF_E_INVALID);
        assert_int_equal(from->size, wrong[i]);
    }
    test_free(to);
    test_free(from);
}

static void has_reads_what_is_there(void **state) {
    (void)state;
    struct grown g = {.size = size_of[1], .second = 5, .third = 6};
    assert_true(RLHF_HAS(struct grown, &g, second));
    assert_false(RLHF_HAS(struct grown, &g, third)); // beyond its size
    g.size = size_of[2], g.second = 0;
    assert_false(RLHF_HAS(struct grown, &g, second)); // not set
    assert_true(RLHF_HAS(struct grown, &g, third));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_reads), cmocka_unit_test(every_pair_is_answered),
        cmocka_unit_test(garbage_is_refused), cmocka_unit_test(has_reads_what_is_there)};
    return cmocka_run_group_tests_name("abi/copy", tests, NULL, NULL);
}
