// test_tensor.c: conversions to and from the 16-bit floats, over every 16-bit value and at the
// edges of rounding.
#include "support/scratch.h"

#include "tensors/tensor.h"
#include "weights/safetensors.h"

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

// A number between two neighbors rounds to the nearer neighbor, and on a tie to the even neighbor.
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

// 16-bit floats widen to the exact values, at any alignment and in any pieces.
static void tensors_widen(void **state) {
    (void)state;
    enum { N = 65536 };
    static uint8_t bytes[2 * N + 1]; // used from its second byte on, so unaligned
    static float got[N];
    for (uint32_t h = 0; h < N; h++)
        memcpy(bytes + 1 + 2 * h, &(uint16_t){(uint16_t)h}, 2);
    for (int f16 = 0; f16 < 2; f16++) {
        const struct rlhf__tensor t = {.name = "t",
                                       .file = "f",
                                       .dtype = f16 ? RLHF__TENSOR_F16 : RLHF__TENSOR_BF16,
                                       .count = N,
                                       .n_bytes = 2 * N,
                                       .data = bytes + 1};
        struct rlhf__error err = {0};
        for (int64_t at = 0, n = 1; at < N; at += n, n = n % 101 + 1)
            check_ok(rlhf__tensor_read_f32(&t, at, at + n < N ? n : N - at, got + at, &err), &err);
        for (uint32_t h = 0; h < N; h++) {
            float want = f16 ? rlhf__f16_to_f32((uint16_t)h) : rlhf__bf16_to_f32((uint16_t)h);
            if (memcmp(&got[h], &want, sizeof want))
                fail_msg("%s 0x%04x: %a, expected %a", f16 ? "f16" : "bf16", h, (double)got[h],
                         (double)want);
        }
    }
}

// An export leaves out some tensors. A model may still be opened with them.
static void tensors_beside_the_model(void **state) {
    (void)state;
    static const char *const buffers[] = {"transformer.h.0.attn.bias", "h.11.attn.masked_bias",
                                          "model.layers.0.self_attn.rotary_emb.inv_freq",
                                          "distilbert.embeddings.position_ids"};
    static const char *const others[] = {"transformer.h.0.attn.c_attn.bias",
                                         "xattn.bias",
                                         "bias",
                                         "lm_head.weight",
                                         "head.v_head.fc",
                                         "v_heads.x"};
    for (size_t i = 0; i < CHECK_COUNT(buffers); i++)
        assert_true(rlhf__tensor_is_buffer(buffers[i]));
    for (size_t i = 0; i < CHECK_COUNT(others); i++) {
        assert_false(rlhf__tensor_is_buffer(others[i]));
        assert_false(rlhf__tensor_is_value_head(others[i]));
    }
    assert_true(rlhf__tensor_is_value_head("v_head.summary.weight"));
    assert_true(rlhf__tensor_is_value_head("v_head.fc.weight"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_comes_back),
        cmocka_unit_test(nearest_even),
        cmocka_unit_test(edges),
        cmocka_unit_test(tensors_widen),
        cmocka_unit_test(tensors_beside_the_model),
    };
    return cmocka_run_group_tests_name("dtype", tests, NULL, NULL);
}
