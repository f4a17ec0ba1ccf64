// test_shards.c: tensors are rounded to narrower dtypes, and distributed over files with an index.
#include "support/scratch.h"

#include "weights/rounding.h"
#include "weights/safetensors.h"
#include "weights/safetensors_writer.h"

#include <math.h>
#include <signal.h>

static const struct rlhf__rounding from = {"file", "a.weight", 100};

static void to_nearest_even(void **state) {
    (void)state;
    // 1 + 2^-8 and 1 + 3 * 2^-8 are halfway between neighboring bf16 values. 2049 and 2051 are
    // halfway between neighboring f16 values.
    const float in[] = {1.00390625f, 1.01171875f, 2049, 2051, -2049, 0.1f, 65519.996f};
    const uint16_t bf16[] = {0x3F80, 0x3F82, 0x4500, 0x4500, 0xC500, 0x3DCD, 0x4780};
    const uint16_t f16[] = {0x3C04, 0x3C0C, 0x6800, 0x6802, 0xE800, 0x2E66, 0x7BFF};
    struct rlhf__error err = {0};
    uint16_t got[7];
    float same[7];
    check_ok(rlhf__round_f32(in, 7, RLHF__TENSOR_BF16, got, &from, &err), &err);
    assert_memory_equal(got, bf16, sizeof bf16);
    check_ok(rlhf__round_f32(in, 7, RLHF__TENSOR_F16, got, &from, &err), &err);
    assert_memory_equal(got, f16, sizeof f16);
    check_ok(rlhf__round_f32(in, 7, RLHF__TENSOR_F32, same, &from, &err), &err);
    assert_memory_equal(same, in, sizeof in);
}

static void too_large_is_refused(void **state) {
    (void)state;
    struct rlhf__error err = {0};
    uint16_t got[3];
    const float half[] = {1, 65519, -65520}, wide[] = {INFINITY, NAN, 3.4e38f};
    check_error(rlhf__round_f32(half, 3, RLHF__TENSOR_F16, got, &from, &err), RLHF_E_INVALID, &err,
                "file: element 102 of tensor a.weight is -65520, which is more than f16 holds "
                "(65504); choose bf16 or f32");
    check_error(rlhf__round_f32(wide, 3, RLHF__TENSOR_BF16, got, &from, &err), RLHF_E_INVALID, &err,
                "element 102 of tensor a.weight is 3.39999995e+38, which is more than bf16 holds");
    check_ok(rlhf__round_f32(wide, 2, RLHF__TENSOR_F16, got, &from, &err), &err); // not finite here
    assert_int_equal(got[0], 0x7C00);
    assert_int_equal(got[1] & 0x7E00, 0x7E00);
}

// ---- files ----

enum { N = 4 };
static const struct rlhf__tensor_spec specs[N] = {
    {"a.weight", RLHF__TENSOR_F32, 2, {3, 4}},
    {"b.weight", RLHF__TENSOR_F32, 1, {5}},
    {"c.ids", RLHF__TENSOR_I64, 1, {2}},
    {"d.weight", RLHF__TENSOR_BF16, 1, {7}},
};

struct fixture {
    struct scratch *s;
    struct rlhf__weights *w;
    const struct rlhf__tensor *tensor[N];
    struct rlhf__folder *to;
};

static void begin(struct fixture *f, struct scratch *s) {
    struct rlhf__error err = {0};
    struct rlhf__weights_writer *w = NULL;
    float x[12];
    const int64_t ids[2] = {7, -1};
    const int order[N] = {2, 0, 1, 3}; // wide tensors come first
    struct rlhf__tensor_spec spec[N];
    f->s = s;
    for (int i = 0; i < 12; i++)
        x[i] = (float)i + 0.1f;
    for (int i = 0; i < N; i++)
        spec[i] = specs[order[i]];
    const char *path = scratch_path(s, "start.safetensors");
    check_ok(rlhf__weights_writer_open(NULL, path, spec, N, NULL, 0, &w, &err), &err);
    check_ok(rlhf__weights_put_bytes(w, ids, sizeof ids, &err), &err);
    check_ok(rlhf__weights_put_f32(w, x, 12, &err), &err);
    check_ok(rlhf__weights_put_f32(w, x, 5, &err), &err);
    check_ok(rlhf__weights_put_f32(w, x, 7, &err), &err);
    check_ok(rlhf__weights_commit(w, &err), &err);
    check_ok(rlhf__weights_open(path, &f->w, &err), &err);
    for (int i = 0; i < N; i++)
        f->tensor[i] = rlhf__weights_at(f->w, (size_t)i);
    check_ok(rlhf__folder_make(NULL, scratch_path(s, "to"), NULL, &f->to, &err), &err);
}

static void end(struct fixture *f) {
    rlhf__folder_close(f->to);
    rlhf__weights_close(f->w);
}

// Asserts that the written files hold the tensors. Floats are converted to `dtype` (-1: unchanged).
static void same(const struct fixture *f, int32_t dtype) {
    struct rlhf__weights *w = NULL;
    struct rlhf__error err = {0};
    check_ok(rlhf__weights_open(scratch_path(f->s, "to"), &w, &err), &err);
    assert_int_equal(rlhf__weights_count(w), N);
    for (int i = 0; i < N; i++) {
        const struct rlhf__tensor *was = f->tensor[i], *is = rlhf__weights_at(w, (size_t)i);
        assert_string_equal(is->name, was->name);
        assert_int_equal(is->ndim, was->ndim);
        assert_memory_equal(is->shape, was->shape, sizeof was->shape);
        if (!rlhf__tensor_is_float(was->dtype) || dtype < 0) {
            assert_int_equal(is->dtype, was->dtype);
            assert_memory_equal(is->data, was->data, was->n_bytes);
            continue;
        }
        float x[12], y[12];
        uint16_t rounded;
        assert_int_equal(is->dtype, dtype);
        check_ok(rlhf__tensor_read_f32(was, 0, was->count, x, &err), &err);
        check_ok(rlhf__tensor_read_f32(is, 0, is->count, y, &err), &err);
        for (int64_t k = 0; k < was->count; k++) {
            rounded = rlhf__f32_to_f16(x[k]);
            assert_true(y[k] == (dtype == RLHF__TENSOR_F16 ? rlhf__f16_to_f32(rounded) : x[k]));
        }
    }
    rlhf__weights_close(w);
}

static void one_file(void **state) {
    struct fixture f;
    struct rlhf__error err = {0};
    struct rlhf__shards_done done;
    begin(&f, *state);
    const struct rlhf__file_shards s = {f.tensor, N, -1, 1 << 20, NULL};
    check_ok(rlhf__shards_write(&s, f.to, &done, &err), &err);
    assert_int_equal(done.n_files, 1);
    assert_int_equal(done.n_parameters, 12 + 5 + 7);
    assert_int_equal(done.n_bytes, 48 + 20 + 16 + 14);
    assert_true(rlhf__folder_has(f.to, "model.safetensors"));
    assert_false(rlhf__folder_has(f.to, "model.safetensors.index.json"));
    same(&f, -1);
    end(&f);
}

static void several_files(void **state) {
    struct fixture f;
    struct rlhf__error err = {0};
    struct rlhf__shards_done done;
    begin(&f, *state);
    // After a.weight (24 bytes), b.weight (10 bytes) does not fit into the same file. b.weight and
    // c.ids (16 bytes) fill a file exactly.
    const struct rlhf__file_shards s = {f.tensor, N, RLHF__TENSOR_F16, 16 + 10, NULL};
    check_ok(rlhf__shards_write(&s, f.to, &done, &err), &err);
    assert_int_equal(done.n_files, 3);
    struct rlhf__buf text = RLHF__BUF_INIT;
    check_ok(rlhf__folder_read(f.to, "model.safetensors.index.json", 1 << 16, &text, &err), &err);
    const char *index = rlhf__buf_text(&text);
    assert_non_null(strstr(index, "\"total_size\": 64"));
    assert_non_null(strstr(index, "\"total_parameters\": 24"));
    assert_non_null(strstr(index, "\"a.weight\": \"model-00001-of-00003.safetensors\""));
    assert_non_null(strstr(index, "\"b.weight\": \"model-00002-of-00003.safetensors\""));
    assert_non_null(strstr(index, "\"c.ids\": \"model-00002-of-00003.safetensors\""));
    assert_non_null(strstr(index, "\"d.weight\": \"model-00003-of-00003.safetensors\""));
    rlhf__buf_finish(&text);
    same(&f, RLHF__TENSOR_F16);
    end(&f);
}

static void stopped(void **state) {
    struct fixture f;
    struct rlhf__error err = {0};
    struct rlhf__shards_done done;
    const volatile sig_atomic_t asked = SIGINT;
    begin(&f, *state);
    const struct rlhf__file_shards s = {f.tensor, N, -1, 1 << 20, &asked};
    check_error(rlhf__shards_write(&s, f.to, &done, &err), RLHF_E_CANCELLED, &err, "stopped");
    assert_false(rlhf__folder_has(f.to, "model.safetensors"));
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(to_nearest_even),
        cmocka_unit_test(too_large_is_refused),
        cmocka_unit_test_setup_teardown(one_file, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(several_files, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(stopped, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("shards", tests, NULL, NULL);
}
