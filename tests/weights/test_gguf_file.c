// test_gguf_file.c: GGUF files are parsed, and files that lie are refused in one sentence.
#include "support/scratch.h"

#include "tensors/gguf_file.h"

#include <math.h>

// ---- files, byte by byte ----

static void text(struct rlhf__buf *b, const char *s) {
    rlhf__buf_u64le(b, strlen(s));
    rlhf__buf_puts(b, s);
}

static void key(struct rlhf__buf *b, const char *name, uint32_t type) {
    text(b, name);
    rlhf__buf_u32le(b, type);
}

static void number(struct rlhf__buf *b, const char *name, uint32_t v) {
    key(b, name, RLHF__GGUF_U32);
    rlhf__buf_u32le(b, v);
}

static void head(struct rlhf__buf *b, uint32_t version, uint64_t n_tensors, uint64_t n_keys) {
    rlhf__buf_puts(b, "GGUF");
    rlhf__buf_u32le(b, version);
    rlhf__buf_u64le(b, n_tensors);
    rlhf__buf_u64le(b, n_keys);
}

static void tensor(struct rlhf__buf *b, const char *name, uint32_t type, uint64_t columns,
                   uint64_t rows, uint64_t offset) {
    text(b, name);
    rlhf__buf_u32le(b, 2);
    rlhf__buf_u64le(b, columns); // the contiguous dimension is first
    rlhf__buf_u64le(b, rows);
    rlhf__buf_u32le(b, type);
    rlhf__buf_u64le(b, offset);
}

// Zeros up to the next multiple of 32, then n bytes 0, 1, 2, ...
static void data(struct rlhf__buf *b, size_t n) {
    while (b->len % 32)
        rlhf__buf_putc(b, 0);
    for (size_t i = 0; i < n; i++)
        rlhf__buf_putc(b, (char)i);
}

// A file with a value of every type and two tensors.
static void good(struct rlhf__buf *b, uint32_t version) {
    head(b, version, 2, 14);
    key(b, "u8", RLHF__GGUF_U8), rlhf__buf_putc(b, (char)200);
    key(b, "i8", RLHF__GGUF_I8), rlhf__buf_putc(b, (char)-56);
    key(b, "u16", RLHF__GGUF_U16), rlhf__buf_put(b, "\xFE\xFF", 2);
    key(b, "i16", RLHF__GGUF_I16), rlhf__buf_put(b, "\xFE\xFF", 2);
    number(b, "u32", 4000000000u);
    key(b, "i32", RLHF__GGUF_I32), rlhf__buf_u32le(b, (uint32_t)-7);
    key(b, "u64", RLHF__GGUF_U64), rlhf__buf_u64le(b, UINT64_MAX);
    key(b, "i64", RLHF__GGUF_I64), rlhf__buf_u64le(b, (uint64_t)-9);
    key(b, "f32", RLHF__GGUF_F32), rlhf__buf_put(b, &(float){0.1f}, 4);
    key(b, "f64", RLHF__GGUF_F64), rlhf__buf_put(b, &(double){0.1}, 8);
    key(b, "yes", RLHF__GGUF_BOOL), rlhf__buf_putc(b, 1);
    key(b, "text", RLHF__GGUF_STR), text(b, "a b");
    key(b, "words", RLHF__GGUF_ARRAY), rlhf__buf_u32le(b, RLHF__GGUF_STR), rlhf__buf_u64le(b, 3);
    text(b, "x"), text(b, ""), text(b, "\xE2\x96\x81y");
    key(b, "scores", RLHF__GGUF_ARRAY), rlhf__buf_u32le(b, RLHF__GGUF_F32);
    rlhf__buf_u64le(b, 2), rlhf__buf_put(b, (float[]){1.5f, -INFINITY}, 8);
    tensor(b, "a.weight", 0, 3, 2, 0);
    tensor(b, "b.weight", 8, 32, 1, 32);
    data(b, 32 + 34);
}

static struct rlhf__gguf_file *open_bytes(struct scratch *s, const struct rlhf__buf *b) {
    struct rlhf__gguf_file *f = NULL;
    struct rlhf__error err = {0};
    check_ok(rlhf__gguf_open(scratch_bytes(s, "m.gguf", b->data, b->len), &f, &err), &err);
    return f;
}

// ---- what a file holds ----

static void integers(const struct rlhf__gguf_file *f) {
    static const struct {
        const char *key;
        int64_t value;
    } cases[] = {{"u8", 200},          {"i8", -56}, {"u16", 65534}, {"i16", -2},
                 {"u32", 4000000000u}, {"i32", -7}, {"i64", -9}};
    struct rlhf__error err = {0};
    int64_t n = 0;
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        const struct rlhf__gguf_value *v = rlhf__gguf_find(f, cases[i].key);
        check_ok(rlhf__gguf_value_int(v, INT64_MIN, INT64_MAX, &n, &err), &err);
        assert_int_equal(n, cases[i].value);
    }
    check_error(rlhf__gguf_value_int(rlhf__gguf_find(f, "u32"), 1, 9, &n, &err), RLHF_E_INVALID,
                &err, "m.gguf: the key u32 is 4000000000, expected an integer from 1 to 9");
    check_error(rlhf__gguf_value_int(rlhf__gguf_find(f, "u64"), -1, 9, &n, &err), RLHF_E_INVALID,
                &err, "the key u64 is 18446744073709551615");
    check_error(rlhf__gguf_value_int(rlhf__gguf_find(f, "f32"), 1, 9, &n, &err), RLHF_E_INVALID,
                &err, "the key f32 is a 32-bit number, expected an integer");
}

static void others(const struct rlhf__gguf_file *f) {
    struct rlhf__error err = {0};
    const char *s;
    size_t n = 0;
    double x = 0;
    int yes = 0;
    check_ok(rlhf__gguf_value_num(rlhf__gguf_find(f, "f32"), &x, &err), &err);
    assert_true(x == 0.1);
    check_ok(rlhf__gguf_value_num(rlhf__gguf_find(f, "f64"), &x, &err), &err);
    assert_true(x == 0.1);
    check_ok(rlhf__gguf_value_num(rlhf__gguf_find(f, "u64"), &x, &err), &err);
    assert_true(x == 0x1p64);
    check_ok(rlhf__gguf_value_bool(rlhf__gguf_find(f, "yes"), &yes, &err), &err);
    assert_int_equal(yes, 1);
    check_ok(rlhf__gguf_value_str(rlhf__gguf_find(f, "text"), &s, &n, &err), &err);
    assert_true(n == 3 && memcmp(s, "a b", 3) == 0);
    check_error(rlhf__gguf_value_str(rlhf__gguf_find(f, "words"), &s, &n, &err), RLHF_E_INVALID,
                &err, "the key words is an array, expected a string");
    check_error(rlhf__gguf_value_bool(rlhf__gguf_find(f, "u8"), &yes, &err), RLHF_E_INVALID, &err,
                "the key u8 is an 8-bit integer, expected a boolean");
    assert_null(rlhf__gguf_find(f, "nothing"));
}

static void arrays(const struct rlhf__gguf_file *f) {
    const struct rlhf__gguf_value *words = rlhf__gguf_find(f, "words");
    const struct rlhf__gguf_value *scores = rlhf__gguf_find(f, "scores");
    struct rlhf__error err = {0};
    size_t n = 0, len = 0;
    check_ok(rlhf__gguf_value_count(words, RLHF__GGUF_STR, &n, &err), &err);
    assert_int_equal(n, 3);
    assert_memory_equal(rlhf__gguf_item_text(words, 2, &len), "\xE2\x96\x81y", 4);
    assert_int_equal(len, 4);
    rlhf__gguf_item_text(words, 1, &len);
    assert_int_equal(len, 0);
    check_ok(rlhf__gguf_value_count(scores, RLHF__GGUF_F64, &n, &err), &err);
    assert_true(n == 2 && rlhf__gguf_item_num(scores, 0) == 1.5);
    assert_true(isinf(rlhf__gguf_item_num(scores, 1)));
    check_error(rlhf__gguf_value_count(scores, RLHF__GGUF_I64, &n, &err), RLHF_E_INVALID, &err,
                "is an array with a 32-bit number in it, expected an array of integers");
    check_error(rlhf__gguf_value_count(words, RLHF__GGUF_F64, &n, &err), RLHF_E_INVALID, &err,
                "is an array with a string in it, expected an array of numbers");
}

static void holds(void **state) {
    for (uint32_t version = 2; version <= 3; version++) {
        struct rlhf__buf b = RLHF__BUF_INIT;
        struct rlhf__error err = {0};
        size_t n = 0;
        uint8_t bytes[34];
        good(&b, version);
        struct rlhf__gguf_file *f = open_bytes(*state, &b);
        integers(f);
        others(f);
        arrays(f);
        const struct rlhf__tensor *t = rlhf__gguf_tensors(f, &n);
        assert_true(n == 2 && rlhf__gguf_tensor_find(f, "b.weight") == &t[1]);
        assert_null(rlhf__gguf_tensor_find(f, "c.weight"));
        assert_true(t[0].ndim == 2 && t[0].shape[0] == 2 && t[0].shape[1] == 3);
        assert_true(t[1].dtype == RLHF__TENSOR_Q8_0 && t[1].n_bytes == 34 && t[1].count == 32);
        check_ok(rlhf__tensor_read_bytes(&t[1], bytes, &err), &err);
        for (int i = 0; i < 34; i++)
            assert_int_equal(bytes[i], 32 + i);
        rlhf__gguf_close(f);
        rlhf__buf_finish(&b);
    }
}

// ---- files that lie ----

static void refuse(struct scratch *s, const struct rlhf__buf *b, const char *part) {
    struct rlhf__gguf_file *f = NULL;
    struct rlhf__error err = {0};
    const char *path = scratch_bytes(s, "bad.gguf", b->data ? b->data : "", b->len);
    const rlhf_status st = rlhf__gguf_open(path, &f, &err);
    assert_null(f);
    assert_true(st == RLHF_E_INVALID || st == RLHF_E_UNSUPPORTED);
    check_error(st, st, &err, part);
    check_error(st, st, &err, "bad.gguf: ");
    assert_null(strstr(strstr(err.text, "bad.gguf: ") + 1, "bad.gguf: ")); // the path only once
}

// A file that ends after any of its bytes is refused.
static void cut_anywhere(void **state) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    good(&b, 3);
    for (size_t n = 0; n < b.len; n++) {
        const struct rlhf__buf cut = {b.data, n, 0, 0};
        refuse(*state, &cut, n < 4 ? "not a GGUF file" : "");
    }
    rlhf__buf_finish(&b);
}

enum lie {
    MAGIC,
    BIG_ENDIAN_FILE,
    VERSION_1,
    VERSION_4,
    MANY_KEYS,
    MANY_TENSORS,
    LONG_KEY,
    EMPTY_KEY,
    BYTE_IN_KEY,
    TYPE_OF_KEY,
    TWICE,
    HUGE_TEXT,
    HUGE_TEXTS,
    HUGE_ARRAY,
    OVERFLOWING_ARRAY,
    ARRAYS,
    TYPE_OF_ARRAY,
    BOOLEAN_2,
    SPLIT,
    ALIGNMENT_3,
    ALIGNMENT_0,
    NO_DIMS,
    FIVE_DIMS,
    ZERO_DIM,
    HUGE_DIM,
    HUGE_DIMS,
    TYPE_23,
    TYPE_99,
    BROKEN_ROW,
    CROOKED,
    BEHIND_END,
    OVERFLOWING_OFFSET,
    OVERLAP,
    TENSOR_TWICE,
    LONG_NAME,
    N_LIES
};

static const char *const parts[N_LIES] = {
    [MAGIC] = "not a GGUF file: it does not begin with \"GGUF\"",
    [BIG_ENDIAN_FILE] = "a big-endian GGUF file",
    [VERSION_1] = "version 1 of GGUF is not read, only 2 and 3",
    [VERSION_4] = "version 4 of GGUF is not read, only 2 and 3",
    [MANY_KEYS] = "is said to have 1152921504606846976 keys; at most 65536",
    [MANY_TENSORS] = "is said to have 1152921504606846976 tensors, more than it has room for",
    [LONG_KEY] = "the name of key 1 has 1152921504606846976 characters; allowed: 1 to 65535",
    [EMPTY_KEY] = "the name of key 1 has 0 characters",
    [BYTE_IN_KEY] = "the name of key 1 has the byte 0x0a; allowed is printable ASCII",
    [TYPE_OF_KEY] = "the key a is of type 13; allowed: 0 to 12",
    [TWICE] = "the key a occurs twice",
    [HUGE_TEXT] = "the key a takes 1152921504606846976 bytes at offset",
    [HUGE_TEXTS] = "the key a has 1152921504606846976 strings, more than the file has room for",
    [HUGE_ARRAY] = "the key a takes 4611686018427387904 bytes",
    [OVERFLOWING_ARRAY] = "the key a has 4611686018427387904 elements, more than",
    [ARRAYS] = "the key a is an array of arrays, which is not read",
    [TYPE_OF_ARRAY] = "the key a is an array of type 77; allowed: 0 to 12",
    [BOOLEAN_2] = "the key a is a boolean of 2; allowed: 0 and 1",
    [SPLIT] = "one of the 3 parts of a split file",
    [ALIGNMENT_3] = "the key general.alignment is 3, expected a power of two",
    [ALIGNMENT_0] = "the key general.alignment is 0, expected an integer from 1 to",
    [NO_DIMS] = "tensor a has 0 dimensions; allowed: 1 to 4",
    [FIVE_DIMS] = "tensor a has 5 dimensions; allowed: 1 to 4",
    [ZERO_DIM] = "tensor a: dimension 1 is 0",
    [HUGE_DIM] = "tensor a: dimension 1 is 9223372036854775808",
    [HUGE_DIMS] = "makes the tensor larger than 2^63 elements",
    [TYPE_23] = "tensor a is of type IQ4_XS, which is not read",
    [TYPE_99] = "tensor a is of the unknown type 99",
    [BROKEN_ROW] = "tensor a has rows of 33 elements, which is not a multiple of the 32 of a block",
    [CROOKED] = "tensor a begins at offset 8, which is not a multiple of the alignment 32",
    [BEHIND_END] = "tensor a takes 16 bytes at offset 64 of the data, but the file holds 64 bytes",
    [OVERFLOWING_OFFSET] = "at offset 18446744073709551584 of the data, but the file holds",
    [OVERLAP] = "the tensors a and b overlap",
    [TENSOR_TWICE] = "the tensor a occurs twice",
    [LONG_NAME] = "the name of tensor 1 has 65 characters; allowed: 1 to 64",
};

#define HUGE_NUMBER ((uint64_t)1 << 60)

static void array(struct rlhf__buf *b, uint32_t type, uint64_t n) {
    head(b, 3, 0, 1);
    key(b, "a", RLHF__GGUF_ARRAY);
    rlhf__buf_u32le(b, type);
    rlhf__buf_u64le(b, n);
}

static void lie_in_head(struct rlhf__buf *b, int32_t lie) {
    head(b,
         lie == BIG_ENDIAN_FILE ? 0x03000000
         : lie == VERSION_1     ? 1
         : lie == VERSION_4     ? 4
                                : 3,
         lie == MANY_TENSORS ? HUGE_NUMBER : 0, lie == MANY_KEYS ? HUGE_NUMBER : 0);
    if (lie == MAGIC) b->data[0] = 'g';
}

static void lie_in_key(struct rlhf__buf *b, int32_t lie) {
    head(b, 3, 0, lie == TWICE ? 2 : 1);
    if (lie == LONG_KEY) rlhf__buf_u64le(b, HUGE_NUMBER);
    if (lie == EMPTY_KEY) rlhf__buf_u64le(b, 0);
    if (lie == BYTE_IN_KEY) number(b, "a\n", 1);
    if (lie == TYPE_OF_KEY) key(b, "a", RLHF__N_GGUF_TYPES);
    if (lie == TWICE) number(b, "a", 1), number(b, "a", 2);
    if (lie == HUGE_TEXT) key(b, "a", RLHF__GGUF_STR), rlhf__buf_u64le(b, HUGE_NUMBER);
    if (lie == BOOLEAN_2) key(b, "a", RLHF__GGUF_BOOL), rlhf__buf_putc(b, 2);
    if (lie == SPLIT) number(b, "split.count", 3);
    if (lie == ALIGNMENT_3) number(b, "general.alignment", 3);
    if (lie == ALIGNMENT_0) number(b, "general.alignment", 0);
}

static void dims(struct rlhf__buf *b, uint32_t n, const uint64_t *dim, uint32_t type,
                 uint64_t offset) {
    head(b, 3, 1, 0);
    text(b, "a");
    rlhf__buf_u32le(b, n);
    for (uint32_t i = 0; i < n; i++)
        rlhf__buf_u64le(b, dim[i]);
    rlhf__buf_u32le(b, type);
    rlhf__buf_u64le(b, offset);
}

static void lie_in_tensor(struct rlhf__buf *b, int32_t lie) {
    static const uint64_t ones[] = {1, 1, 1, 1, 1}, none[] = {0}, four[] = {4};
    static const uint64_t huge[] = {(uint64_t)1 << 63}, many[] = {(uint64_t)1 << 62, 4};
    static const uint64_t broken[] = {33};
    static const char long_name[] =
        "01234567890123456789012345678901234567890123456789012345678901234";
    if (lie == NO_DIMS) dims(b, 0, ones, 0, 0);
    if (lie == FIVE_DIMS) dims(b, 5, ones, 0, 0);
    if (lie == ZERO_DIM) dims(b, 1, none, 0, 0);
    if (lie == HUGE_DIM) dims(b, 1, huge, 0, 0);
    if (lie == HUGE_DIMS) dims(b, 2, many, 0, 0);
    if (lie == TYPE_23) dims(b, 1, four, 23, 0);
    if (lie == TYPE_99) dims(b, 1, four, 99, 0);
    if (lie == BROKEN_ROW) dims(b, 1, broken, 8, 0);
    if (lie == CROOKED) dims(b, 1, four, 0, 8);
    if (lie == BEHIND_END) dims(b, 1, four, 0, 64);
    if (lie == OVERFLOWING_OFFSET) dims(b, 1, four, 0, (uint64_t)-32);
    if (lie == OVERLAP || lie == TENSOR_TWICE) {
        head(b, 3, 2, 0);
        tensor(b, "a", 0, 4, 4, 0);
        tensor(b, lie == OVERLAP ? "b" : "a", 0, 4, 1, lie == OVERLAP ? 32 : 64);
    }
    if (lie == LONG_NAME) {
        head(b, 3, 1, 0);
        tensor(b, long_name, 0, 1, 1, 0);
    }
    data(b, lie == TENSOR_TWICE ? 80 : 64);
}

static void lies(void **state) {
    for (int32_t lie = 0; lie < N_LIES; lie++) {
        struct rlhf__buf b = RLHF__BUF_INIT;
        if (lie <= MANY_TENSORS)
            lie_in_head(&b, lie);
        else if (lie == HUGE_TEXTS)
            array(&b, RLHF__GGUF_STR, HUGE_NUMBER);
        else if (lie == HUGE_ARRAY)
            array(&b, RLHF__GGUF_F32, HUGE_NUMBER);
        else if (lie == OVERFLOWING_ARRAY)
            array(&b, RLHF__GGUF_F32, HUGE_NUMBER * 4);
        else if (lie == ARRAYS)
            array(&b, RLHF__GGUF_ARRAY, 1);
        else if (lie == TYPE_OF_ARRAY)
            array(&b, 77, 1);
        else if (lie <= ALIGNMENT_0)
            lie_in_key(&b, lie);
        else
            lie_in_tensor(&b, lie);
        refuse(*state, &b, parts[lie]);
        rlhf__buf_finish(&b);
    }
}

static void which_files(void **state) {
    struct scratch *s = *state;
    struct rlhf__gguf_file *f = NULL;
    struct rlhf__error err = {0};
    assert_true(rlhf__gguf_is(scratch_text(s, "yes", "GGUF...")));
    assert_false(rlhf__gguf_is(scratch_text(s, "no", "version https://git-lfs")));
    assert_false(rlhf__gguf_is(scratch_text(s, "short", "GGU")));
    assert_false(rlhf__gguf_is(s->dir));
    assert_false(rlhf__gguf_is(scratch_path(s, "gone")));
    check_error(rlhf__gguf_open(s->dir, &f, &err), RLHF_E_INVALID, &err, s->dir);
    check_error(rlhf__gguf_open(scratch_path(s, "gone"), &f, &err), RLHF_E_INVALID, &err, "gone");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(holds),
        TEST(cut_anywhere),
        TEST(lies),
        TEST(which_files),
    };
    return cmocka_run_group_tests_name("gguf_file", tests, NULL, NULL);
}
