// test_philox.c: compares the generator of rlhf/rng.h with known answers from Random123, the
// library of Salmon et al. (kat_vectors, philox4x32 with 10 rounds).
#include "support/check.h"
#include <rlhf/rng.h>

static void known_answers(void **state) {
    (void)state;
    // The vectors give counter words 0..3 and key words 0..1.
    static const struct {
        uint32_t ctr[4], key[2], want[4];
    } kat[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < CHECK_COUNT(kat); i++) {
        const rlhf_rng r = {.seed = (uint64_t)kat[i].key[1] << 32 | kat[i].key[0],
                            .counter = (uint64_t)kat[i].ctr[1] << 32 | kat[i].ctr[0],
                            .stream = (uint64_t)kat[i].ctr[3] << 32 | kat[i].ctr[2]};
        uint32_t got[4];
        rlhf_rng_block(&r, got);
        for (int j = 0; j < 4; j++)
            assert_int_equal(got[j], kat[i].want[j]);
    }
}

static void numbers_stay_in_range(void **state) {
    (void)state;
    assert_true(rlhf_rng_f64(0, 0) == 0.0);
    assert_true(rlhf_rng_f64(0xffffffff, 0xffffffff) < 1.0);
    assert_true(rlhf_rng_f32(0xffffffff) < 1.0f);
    rlhf_rng r = {.seed = 3};
    double sum = 0.0;
    for (int i = 0; i < 100000; i++) {
        const double u = rlhf_rng_next(&r);
        assert_true(u >= 0.0 && u < 1.0);
        sum += u;
    }
    assert_int_equal(r.counter, 100000);
    assert_true(sum / 100000.0 > 0.497 && sum / 100000.0 < 0.503);
    for (int i = 0; i < 1000; i++)
        assert_in_range(rlhf_rng_below(&r, 7), 0, 6);
    assert_int_equal(rlhf_rng_below(&r, 1), 0);
}

static void streams_differ(void **state) {
    (void)state;
    // FNV-1a of "" and of "a", from its authors' test vectors.
    assert_true(rlhf_rng_stream("") == 0xcbf29ce484222325u);
    assert_true(rlhf_rng_stream("a") == 0xaf63dc4c8601ec8cu);
    assert_true(rlhf_rng_stream("rollout") != rlhf_rng_stream("prompts"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_answers),
                                       cmocka_unit_test(numbers_stay_in_range),
                                       cmocka_unit_test(streams_differ)};
    return cmocka_run_group_tests_name("kernels: philox", tests, NULL, NULL);
}
