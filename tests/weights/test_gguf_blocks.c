// test_gguf_blocks.c: the numbers of quantised blocks have the bits of gguf-py's
// (make_gguf_blocks.py), in any pieces and with rearranged rows.
#include "support/scratch.h"

#include "tensors/gguf_file.h"
#include "weights/safetensors.h"

#include <math.h>

static const char *const names[] = {"Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K",
                                    "Q5_K", "Q6_K", "F16",  "BF16", "F32"};
enum { N_QUANTISED = 8 };

struct vectors {
    struct rlhf__gguf_file *file;
    struct rlhf__weights *want;
};

static int open_vectors(void **state) {
    static struct vectors v;
    struct rlhf__error err = {0};
    check_ok(rlhf__gguf_open("data/blocks.gguf", &v.file, &err), &err);
    check_ok(rlhf__weights_open("data/blocks.safetensors", &v.want, &err), &err);
    *state = &v;
    return 0;
}

static int close_vectors(void **state) {
    struct vectors *v = *state;
    rlhf__gguf_close(v->file);
    rlhf__weights_close(v->want);
    return 0;
}

static float *expected(const struct vectors *v, const char *name, int64_t *count) {
    const struct rlhf__tensor *t = rlhf__weights_find(v->want, name);
    struct rlhf__error err = {0};
    assert_non_null(t);
    float *out = malloc((size_t)t->count * sizeof *out);
    assert_non_null(out);
    check_ok(rlhf__tensor_read_f32(t, 0, t->count, out, &err), &err);
    *count = t->count;
    return out;
}

// The same bits, or both not a number.
static void check_same(const char *name, const float *got, const float *want, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (isnan(got[i]) && isnan(want[i])) continue;
        if (memcmp(&got[i], &want[i], sizeof *got) != 0)
            fail_msg("%s: element %lld is %a, expected %a", name, (long long)i, (double)got[i],
                     (double)want[i]);
    }
}

static void as_gguf_py(void **state) {
    const struct vectors *v = *state;
    static const int64_t steps[] = {1 << 20, 1, 7, 31, 32, 33, 255, 300};
    for (size_t k = 0; k < CHECK_COUNT(names); k++) {
        const struct rlhf__tensor *t = rlhf__gguf_tensor_find(v->file, names[k]);
        struct rlhf__error err = {0};
        int64_t n = 0;
        float *want = expected(v, names[k], &n), *got = malloc((size_t)n * sizeof *got);
        assert_true(t && got && t->count == n && t->shape[0] == 2);
        assert_string_equal(rlhf__tensor_dtype_name(t->dtype), names[k]);
        for (size_t s = 0; s < CHECK_COUNT(steps); s++) {
            for (int64_t at = 0; at < n; at += steps[s])
                check_ok(rlhf__tensor_read_f32(t, at, n - at < steps[s] ? n - at : steps[s],
                                               got + at, &err),
                         &err);
            check_same(names[k], got, want, n);
        }
        free(want);
        free(got);
    }
}

// ---- rearranged rows ----

// The tensor's element (r, c), from the numbers in the order of the file.
static float arranged(const struct rlhf__tensor *t, const float *file, int64_t r, int64_t c) {
    const int64_t columns = t->shape[1], half = t->head / 2;
    if (t->order == RLHF__TENSOR_TRANSPOSED) return file[c * t->shape[0] + r];
    if (t->order == RLHF__TENSOR_PLUS_ONE) return file[r * columns + c] - 1;
    const int is_column = t->order == RLHF__TENSOR_TILED_COLUMNS;
    if (is_column || t->order == RLHF__TENSOR_TILED) {
        const int64_t at = is_column ? c : r, all = is_column ? columns : t->shape[0];
        const int64_t each = (all - t->first) / t->head / t->groups;
        for (int64_t g = 0; g < t->groups; g++) // head k of group g is head k groups + g there
            for (int64_t k = 0; k < each; k++)
                for (int64_t x = 0; x < t->head; x++)
                    if (at == t->first + (g * each + k) * t->head + x) {
                        const int64_t to = t->first + (k * t->groups + g) * t->head + x;
                        return file[is_column ? r * columns + to : to * columns + c];
                    }
        return file[r * columns + c];
    }
    if (t->order != RLHF__TENSOR_PAIRED) return file[r * columns + c];
    for (int64_t j = 0; j < half; j++) // row s half + j of a head is row 2 j + s in the file
        for (int64_t s = 0; s < 2; s++)
            if (r % t->head == s * half + j)
                return file[(r - r % t->head + 2 * j + s) * columns + c];
    return NAN;
}

static void check_order(struct rlhf__tensor t, const float *file) {
    static const int64_t steps[] = {1 << 20, 5, 96, 257};
    struct rlhf__error err = {0};
    float *got = malloc((size_t)t.count * sizeof *got), *want = malloc((size_t)t.count * 4);
    assert_true(got && want);
    for (int64_t i = 0; i < t.count; i++)
        want[i] = arranged(&t, file, i / t.shape[1], i % t.shape[1]);
    for (size_t s = 0; s < CHECK_COUNT(steps); s++) {
        for (int64_t at = 0; at < t.count; at += steps[s])
            check_ok(rlhf__tensor_read_f32(
                         &t, at, t.count - at < steps[s] ? t.count - at : steps[s], got + at, &err),
                     &err);
        check_same(t.name, got, want, t.count);
    }
    free(got);
    free(want);
}

static void rows_in_any_order(void **state) {
    const struct vectors *v = *state;
    for (size_t k = 0; k < CHECK_COUNT(names); k++) {
        struct rlhf__tensor t = *rlhf__gguf_tensor_find(v->file, names[k]);
        int64_t n = 0;
        float *file = expected(v, names[k], &n);
        const int64_t block = rlhf__tensor_dtype_block(t.dtype);
        t.shape[1] = block; // rows of one block or, if not quantised, of one element
        t.shape[0] = t.count / t.shape[1];
        t.order = RLHF__TENSOR_PLUS_ONE;
        check_order(t, file);
        t.order = RLHF__TENSOR_PAIRED;
        t.head = 6;
        t.shape[0] -= t.shape[0] % 6; // without the last rows
        t.count = t.shape[0] * t.shape[1];
        check_order(t, file);
        t.order = RLHF__TENSOR_TILED; // six heads of one row behind two rows
        t.head = 1;
        t.groups = 2;
        t.first = 2;
        t.shape[0] = 8;
        t.count = 8 * t.shape[1];
        check_order(t, file);
        t.order = RLHF__TENSOR_TILED_COLUMNS;
        t.first = t.shape[1] = 8 * t.shape[1]; // all in front; then eight heads
        t.shape[0] = 1;
        t.count = t.shape[1];
        check_order(t, file);
        t.first = 0;
        t.head = (int32_t)t.shape[1] / 8;
        check_order(t, file);
        t = *rlhf__gguf_tensor_find(v->file, names[k]);
        t.order = RLHF__TENSOR_TRANSPOSED;
        t.shape[0] = t.shape[1];
        t.shape[1] = 2;
        check_order(t, file);
        free(file);
    }
}

// ---- blocks of rows ----

// Blocks that are copied and then decoded give the numbers of rlhf__tensor_read_f32.
static void check_blocks(const struct rlhf__tensor *t) {
    const int64_t columns = t->shape[1], block = rlhf__tensor_dtype_block(t->dtype);
    const size_t row = (size_t)(columns / block) * rlhf__tensor_dtype_size(t->dtype);
    uint8_t *blocks = malloc(row * (size_t)t->shape[0]);
    float *want = malloc((size_t)t->count * sizeof *want), *got = malloc((size_t)t->count * 4);
    struct rlhf__error err = {0};
    assert_true(blocks && want && got && rlhf__tensor_has_blocks(t));
    check_ok(rlhf__tensor_read_f32(t, 0, t->count, want, &err), &err);
    for (int64_t step = 1; step <= t->shape[0]; step += 4) {
        memset(blocks, 0, row * (size_t)t->shape[0]);
        for (int64_t r = 0; r < t->shape[0]; r += step)
            check_ok(rlhf__tensor_read_blocks(t, r, t->shape[0] - r < step ? t->shape[0] - r : step,
                                              blocks + (size_t)r * row, &err),
                     &err);
        const struct rlhf__tensor copy = {.name = t->name,
                                          .file = "copy",
                                          .dtype = t->dtype,
                                          .ndim = 2,
                                          .shape = {t->shape[0], columns},
                                          .count = t->count,
                                          .n_bytes = row * (size_t)t->shape[0],
                                          .data = blocks};
        check_ok(rlhf__tensor_read_f32(&copy, 0, copy.count, got, &err), &err);
        check_same(t->name, got, want, t->count);
    }
    free(blocks);
    free(want);
    free(got);
}

static void blocks_of_rows(void **state) {
    const struct vectors *v = *state;
    struct rlhf__error err = {0};
    for (size_t k = 0; k < N_QUANTISED; k++) {
        struct rlhf__tensor t = *rlhf__gguf_tensor_find(v->file, names[k]), two = t;
        check_blocks(&t);
        t.shape[0] = 22; // rows of one block
        t.shape[1] = rlhf__tensor_dtype_block(t.dtype);
        two = t;
        two.shape[0] += t.shape[0]; // both halves are the same tensor
        two.count += t.count;
        two.then = &t;
        check_blocks(&two);
        t.order = RLHF__TENSOR_PAIRED;
        t.head = 22;
        t.shape[0] = 22;
        t.count = t.shape[0] * t.shape[1];
        check_blocks(&t);
        t.order = RLHF__TENSOR_TRANSPOSED;
        assert_false(rlhf__tensor_has_blocks(&t));
        check_error(rlhf__tensor_read_blocks(&t, 0, 1, &(char){0}, &err), RLHF_E_UNSUPPORTED, &err,
                    "are not quantised");
    }
    assert_false(rlhf__tensor_has_blocks(rlhf__gguf_tensor_find(v->file, "F16")));
}

// ---- scales ----

// In make_gguf_blocks.py, block 10 has the infinite scale or, if a block has two, block 9.
static void infinite_scales(void **state) {
    const struct vectors *v = *state;
    struct rlhf__error err = {0};
    char says[96];
    for (size_t k = 0; k < N_QUANTISED; k++) {
        const struct rlhf__tensor *t = rlhf__gguf_tensor_find(v->file, names[k]);
        const int two = strstr("Q4_1 Q5_1 Q4_K Q5_K", names[k]) != NULL;
        struct rlhf__tensor good = *t;
        snprintf(says, sizeof says, "blocks.gguf: block %d of tensor %s (%s) has a scale that is",
                 two ? 9 : 10, names[k], names[k]);
        check_error(rlhf__tensor_check_scales(t, &err), RLHF_E_INVALID, &err, says);
        good.n_bytes = 9 * rlhf__tensor_dtype_size(t->dtype);
        check_ok(rlhf__tensor_check_scales(&good, &err), &err);
        good.then = t; // the rows of the second part are looked at, too
        check_error(rlhf__tensor_check_scales(&good, &err), RLHF_E_INVALID, &err, says);
    }
    check_ok(rlhf__tensor_check_scales(rlhf__gguf_tensor_find(v->file, "F16"), &err), &err);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(as_gguf_py, open_vectors, close_vectors),
        cmocka_unit_test_setup_teardown(rows_in_any_order, open_vectors, close_vectors),
        cmocka_unit_test_setup_teardown(blocks_of_rows, open_vectors, close_vectors),
        cmocka_unit_test_setup_teardown(infinite_scales, open_vectors, close_vectors),
    };
    return cmocka_run_group_tests_name("gguf_blocks", tests, NULL, NULL);
}
