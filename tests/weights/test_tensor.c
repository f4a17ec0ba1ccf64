// test_tensor.c: conversions to and from the 16-bit floats, over every 16-bit value and at the
// edges of rounding.
#include "support/scratch.h"

#include "weights/tensor.h"

#include <math.h>

static void every_half_comes_back(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float b = rlhf__bf16_to_f32((uint16_t)h), f = rlhf__f16_to_f32((uint16_t)h);
        if (isnan(b))
            assert_true(isnan(rlhf__bf16_to_f32(rlhf__f32_to_bf16(b))));
        else
            assert_int_equal(rlhf__f32_to_bf16(b), h);
        if (isnan(f))
            assert_true(isnan(rlhf__f16_to_f32(rlhf__f32_to_f16(f))));
        else
            assert_int_equal(rlhf__f32_to_f16(f), h);
    }
}

// Between two neighbours the nearer one wins, and of two equally near the even one.
static void check_rounding(uint16_t (*to)(float), float (*from)(uint16_t), uint32_t last) {
    for (uint32_t h = 0; h < last; h++) {
        float lo = from((uint16_t)h), hi = from((uint16_t)(h + 1)), mid = lo + (hi - lo) / 2;
        assert_int_equal(to(nextafterf(mid, lo)), h);
        assert_int_equal(to(nextafterf(mid, hi)), h + 1);
        assert_int_equal(to(mid), h % 2 ? h + 1 : h);
        assert_int_equal(to(-nextafterf(mid, hi)), (h + 1) | 0x8000);
    }
}

static void nearest_even(void **state) {
    (void)state;
    check_rounding(rlhf__f32_to_f16, rlhf__f16_to_f32, 0x7BFF);
    check_rounding(rlhf__f32_to_bf16, rlhf__bf16_to_f32, 0x7F7F);
}

static void edges(void **state) {
    (void)state;
    assert_int_equal(rlhf__f32_to_f16(65504.0f), 0x7BFF);
    assert_int_equal(rlhf__f32_to_f16(65519.99f), 0x7BFF);
    assert_int_equal(rlhf__f32_to_f16(65520.0f), 0x7C00);
    assert_int_equal(rlhf__f32_to_f16(-1e30f), 0xFC00);
    assert_int_equal(rlhf__f32_to_f16(0x1p-25f), 0);
    assert_int_equal(rlhf__f32_to_f16(-0.0f), 0x8000);
    assert_int_equal(rlhf__f32_to_bf16(3.4e38f), 0x7F80);
    assert_int_equal(rlhf__f32_to_bf16(INFINITY), 0x7F80);
    assert_true(rlhf__f16_to_f32(1) == 0x1p-24f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_comes_back),
        cmocka_unit_test(nearest_even),
        cmocka_unit_test(edges),
    };
    return cmocka_run_group_tests_name("dtype", tests, NULL, NULL);
}
