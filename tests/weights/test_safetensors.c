// test_safetensors.c: weight files are written and read back. Also tests invalid files, shards and
// full disks.
#include "support/scratch.h"

#include "weights/safetensors.h"
#include "weights/safetensors_writer.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

// Writes a file of this header and of n_data bytes 0, 1, 2, ...
static const char *make_file(struct scratch *s, const char *name, const char *header,
                             size_t n_data) {
    uint8_t bytes[4096];
    size_t n = strlen(header);
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)n >> (8 * i));
    memcpy(bytes + 8, header, n);
    for (size_t i = 0; i < n_data; i++)
        bytes[8 + n + i] = (uint8_t)i;
    return scratch_bytes(s, name, bytes, 8 + n + n_data);
}

static void expect_error(const char *path, rlhf_status code, const char *part) {
    struct rlhf__weights *w = NULL;
    struct rlhf__error err = {0};
    check_error(rlhf__weights_open(path, &w, &err), code, &err, part);
    assert_null(w);
}

static struct rlhf__weights *expect_open(const char *path) {
    struct rlhf__weights *w = NULL;
    struct rlhf__error err = {0};
    check_ok(rlhf__weights_open(path, &w, &err), &err);
    return w;
}

static rlhf_status read_f32(const struct rlhf__tensor *t, float *out, struct rlhf__error *err) {
    return rlhf__tensor_read_f32(t, 0, t->count, out, err);
}

static const struct rlhf__tensor_spec specs[] = {
    {"wide.weight", RLHF__TENSOR_F32, 2, {2, 3}},
    {"scalar", RLHF__TENSOR_F32, 0, {0}},
    {"empty", RLHF__TENSOR_F32, 2, {0, 7}},
    {"half \"quoted\" \xC3\xA9", RLHF__TENSOR_BF16, 1, {5}},
    {"small", RLHF__TENSOR_F16, 1, {3}},
    {"bytes", RLHF__TENSOR_U8, 1, {3}},
};
enum { N_SPECS = sizeof specs / sizeof specs[0] };
static const float wide[] = {1.0f, -2.5f, 3.25f, 1e-30f, INFINITY, 0.1f};
static const float scalar = 42.0f;
static const float half[] = {1.0f, 1.00390625f, 1.01171875f, -0.1f, 3.0e38f};

static void write_all(const char *path) {
    struct rlhf__weights_writer *w = NULL;
    struct rlhf__error err = {0};
    check_ok(rlhf__weights_writer_open(NULL, path, specs, N_SPECS, NULL, 0, &w, &err), &err);
    check_ok(rlhf__weights_put_f32(w, wide, 2, &err), &err);
    check_ok(rlhf__weights_put_f32(w, wide + 2, 4, &err), &err); // in pieces
    check_ok(rlhf__weights_put_f32(w, &scalar, 1, &err), &err);
    check_ok(rlhf__weights_put_f32(w, half, 5, &err), &err);
    check_ok(rlhf__weights_put_f32(w, wide, 3, &err), &err);
    check_ok(rlhf__weights_put_bytes(w, "xyz", 3, &err), &err);
    check_ok(rlhf__weights_commit(w, &err), &err);
}

static void round_trip(void **state) {
    struct scratch *s = *state;
    write_all(scratch_path(s, "a.safetensors"));
    struct rlhf__weights *w = expect_open(scratch_path(s, "a.safetensors"));
    struct rlhf__error err = {0};
    float got[8];
    assert_int_equal(rlhf__weights_count(w), N_SPECS);
    assert_string_equal(rlhf__weights_metadata(w, "format"), "pt");
    assert_null(rlhf__weights_metadata(w, "nothing"));
    assert_null(rlhf__weights_find(w, "nothing"));
    const struct rlhf__tensor *t = rlhf__weights_find(w, "wide.weight");
    assert_int_equal(t->ndim, 2);
    assert_int_equal(t->shape[1], 3);
    assert_int_equal((uintptr_t)t->data % 8, 0); // the first tensor is aligned
    check_ok(read_f32(t, got, &err), &err);
    assert_memory_equal(got, wide, sizeof wide);
    t = rlhf__weights_find(w, "scalar");
    assert_int_equal(t->count, 1);
    assert_int_equal(rlhf__weights_find(w, "empty")->count, 0);
    check_ok(read_f32(rlhf__weights_find(w, "empty"), got, &err), &err);
    check_ok(read_f32(rlhf__weights_find(w, specs[3].name), got, &err), &err);
    const float rounded[] = {1.0f, 1.0f, 1.015625f, -0.10009765625f, 0x1.c4p+127f};
    assert_memory_equal(got, rounded, sizeof rounded); // ties go to even
    check_ok(read_f32(rlhf__weights_find(w, "small"), got, &err), &err);
    assert_true(got[1] == -2.5f);
    t = rlhf__weights_find(w, "bytes");
    assert_memory_equal(t->data, "xyz", 3);
    check_error(read_f32(t, got, &err), RLHF_E_UNSUPPORTED, &err, "tensor bytes is U8");
    for (size_t i = 1; i < N_SPECS; i++) // sorted by name
        assert_true(strcmp(rlhf__weights_at(w, i - 1)->name, rlhf__weights_at(w, i)->name) < 0);
    rlhf__weights_close(w);
}

static void same_input_same_bytes(void **state) {
    struct scratch *s = *state;
    struct rlhf__buf a = RLHF__BUF_INIT, b = RLHF__BUF_INIT;
    struct rlhf__error err = {0};
    write_all(scratch_path(s, "a.safetensors"));
    write_all(scratch_path(s, "b.safetensors"));
    check_ok(rlhf__file_read(scratch_path(s, "a.safetensors"), 1 << 20, &a, &err), &err);
    check_ok(rlhf__file_read(scratch_path(s, "b.safetensors"), 1 << 20, &b, &err), &err);
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.data, b.data, a.len);
    rlhf__buf_finish(&a);
    rlhf__buf_finish(&b);
}

// Each header makes one false statement about 16 bytes of data, or is not a header at all.
static void lies(void **state) {
    static const struct {
        const char *header, *part;
        rlhf_status code;
    } cases[] = {
        {"{", "not valid JSON", RLHF_E_INVALID},
        {"[]", "the header is a list", RLHF_E_INVALID},
        {"{\"a\":3}", "tensor 'a' is an integer", RLHF_E_INVALID},
        {"{\"a\":{\"shape\":[4],\"data_offsets\":[0,16]}}", "dtype is missing", RLHF_E_INVALID},
        {"{\"a\":{\"dtype\":\"F99\",\"shape\":[4],\"data_offsets\":[0,16]}}", "'F99' is unknown",
         RLHF_E_UNSUPPORTED},
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,16]}}", "shape is missing", RLHF_E_INVALID},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-4],\"data_offsets\":[0,16]}}", "dimension 0",
         RLHF_E_INVALID},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4.0],\"data_offsets\":[0,16]}}", "dimension 0",
         RLHF_E_INVALID},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,16]}}",
         "too large", RLHF_E_INVALID},
        {"{\"a\":{\"dtype\":\"F64\",\"shape\":[4611686018427387904],\"data_offsets\":[0,0]}}",
         "too large", RLHF_E_INVALID},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,4],\"data_offsets\":[0,16]}}",
         "9 dimensions", RLHF_E_UNSUPPORTED},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4]}}", "data_offsets must be", RLHF_E_INVALID},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0]}}", "data_offsets must be",
         RLHF_E_INVALID},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[-16,0]}}",
         "data_offsets must be", RLHF_E_INVALID},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[16,0]}}", "lie outside the 16",
         RLHF_E_INVALID},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0,20]}}",
         "lie outside the 16 bytes of data that the file holds; was all of the file copied?",
         RLHF_E_INVALID},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,16]}}",
         "span 16 bytes but F32 [3] takes 12", RLHF_E_INVALID},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}",
         "'a' and 'b' overlap", RLHF_E_INVALID},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}",
         "4 bytes before tensor 'b'", RLHF_E_INVALID},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}",
         "describes 12 bytes of data but the file holds 16", RLHF_E_INVALID},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},"
         "\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}",
         "duplicate", RLHF_E_INVALID},
        {"{\"__metadata__\":3,\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}",
         "__metadata__ is an integer", RLHF_E_INVALID},
        {"{\"__metadata__\":{\"k\":1},\"a\":{\"dtype\":\"F32\",\"shape\":[4],"
         "\"data_offsets\":[0,16]}}",
         "__metadata__: 'k' is not a string", RLHF_E_INVALID},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        const char *path = make_file(*state, "lie.safetensors", cases[i].header, 16);
        expect_error(path, cases[i].code, cases[i].part);
        expect_error(path, cases[i].code, "lie.safetensors"); // and the file is named
    }
    const char *good = "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}   ";
    rlhf__weights_close(expect_open(make_file(*state, "good.safetensors", good, 16)));
}

static void bad_files(void **state) {
    struct scratch *s = *state;
    expect_error(scratch_path(s, "none.safetensors"), RLHF_E_INVALID, "none.safetensors");
    expect_error(scratch_text(s, "a.safetensors", ""), RLHF_E_INVALID, "the file has 0 bytes");
    expect_error(scratch_text(s, "b.safetensors", "short"), RLHF_E_INVALID, "the file has 5 bytes");
    expect_error(scratch_text(s, "c.safetensors", "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}"),
                 RLHF_E_INVALID, "truncated");
    expect_error(scratch_text(s, "d.safetensors", "<html>not a weight file</html>"), RLHF_E_INVALID,
                 "no safetensors file");
    // The file is truncated in many places, and is refused each time.
    struct rlhf__buf all = RLHF__BUF_INIT;
    struct rlhf__error err = {0};
    write_all(scratch_path(s, "whole.safetensors"));
    check_ok(rlhf__file_read(scratch_path(s, "whole.safetensors"), 1 << 20, &all, &err), &err);
    for (size_t n = 0; n < all.len; n += n + 9 < all.len ? 9 : 1)
        expect_error(scratch_bytes(s, "cut.safetensors", all.data, n), RLHF_E_INVALID,
                     "cut.safetensors");
    rlhf__buf_finish(&all);
}

// If a directory lacks safetensors, the message depends on the file that it has instead.
static void other_formats(void **state) {
    static const struct {
        const char *name, *part;
    } cases[] = {
        {NULL, "holds no weights; expected model.safetensors or model.safetensors.index.json"},
        {"consolidated.00.pth", "consolidated.00.pth is of Meta"},
        {"weights.pt", "weights.pt is a pickle, which is never read; load it in Python as its"},
        {"model.fp16.safetensors", "model.fp16.safetensors has a name that no loader looks for; a "
                                   "checkpoint in pieces needs its index"},
        {"adapter_model.safetensors",
         "adapter_model.safetensors is an adapter, not a model; merge"},
        {"flax_model.msgpack", "flax_model.msgpack holds Flax's weights"},
        {"tf_model.h5", "tf_model.h5 holds TensorFlow's weights"},
        {"pytorch_model.bin.index.json", "names pickles, which are never read; convert"},
        {"pytorch_model.bin",
         "holds no model.safetensors or model.safetensors.index.json: pytorch_model.bin is a "
         "pickle, which is never read; convert it once, in Python: "
         "transformers.AutoModelForCausalLM.from_pretrained(\"DIR\").save_pretrained(\"DIR\") (of "
         "a classifier, AutoModelForSequenceClassification)"},
        {"q8.gguf", "q8.gguf is a GGUF file; give the file itself instead of the directory"},
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) { // each has precedence over the files above
        if (cases[i].name) scratch_text(s, cases[i].name, "x");
        expect_error(s->dir, RLHF_E_INVALID, cases[i].part);
    }
}

// If a file shrinks after it was opened, the result is an error message, not a signal.
static void cut_while_read(void **state) {
    struct scratch *s = *state;
    enum { N = 1 << 16 };
    const struct rlhf__tensor_spec big = {"big", RLHF__TENSOR_BF16, 1, {N}};
    const char *path = scratch_path(s, "cut.safetensors");
    struct rlhf__weights_writer *out = NULL;
    struct rlhf__error err = {0};
    static float values[N];
    check_ok(rlhf__weights_writer_open(NULL, path, &big, 1, NULL, 0, &out, &err), &err);
    check_ok(rlhf__weights_put_f32(out, values, N, &err), &err);
    check_ok(rlhf__weights_commit(out, &err), &err);
    struct rlhf__weights *w = expect_open(path);
    const struct rlhf__tensor *t = rlhf__weights_find(w, "big");
    check_ok(rlhf__tensor_read_f32(t, 0, N, values, &err), &err);
    assert_int_equal(truncate(path, 4096), 0);
    check_error(rlhf__tensor_read_f32(t, N / 2, N / 2, values, &err), RLHF_E_IO, &err,
                "cut.safetensors had ");
    check_error(rlhf__tensor_read_bytes(t, values, &err), RLHF_E_IO, &err,
                "became shorter, or unreadable, while it was read");
    rlhf__weights_close(w);
}

static void shards(void **state) {
    struct scratch *s = *state;
    make_file(s, "one.safetensors",
              "{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4);
    make_file(s, "two.safetensors",
              "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2);
    const char *index = "model.safetensors.index.json";
    scratch_text(s, index,
                 "{\"weight_map\": {\"b\": \"one.safetensors\", \"a\": \"two.safetensors\"}}");
    struct rlhf__weights *w = expect_open(s->dir);
    assert_int_equal(rlhf__weights_count(w), 2);
    assert_string_equal(rlhf__weights_at(w, 0)->name, "a");
    assert_non_null(strstr(rlhf__weights_find(w, "b")->file, "one.safetensors"));
    rlhf__weights_close(w);
    // Writers store different numbers in total_size: the size of the tensors, the size of the
    // files, or the size that the tensors have in another dtype. All are accepted.
    scratch_text(s, index,
                 "{\"metadata\": {\"total_size\": 1e30}, \"weight_map\": {\"b\": "
                 "\"one.safetensors\", \"a\": \"two.safetensors\"}}");
    rlhf__weights_close(expect_open(s->dir));
    // In huggingface_hub's cache every file is a link to somewhere else.
    assert_int_equal(symlink("two.safetensors", scratch_path(s, "link.safetensors")), 0);
    scratch_text(s, index,
                 "{\"weight_map\": {\"b\": \"one.safetensors\", \"a\": \"link.safetensors\"}}");
    rlhf__weights_close(expect_open(s->dir));
    // As in transformers, weight_map only tells which shards there are: tensors that no shard has
    // are ignored, and tensors are found in other shards.
    scratch_text(s, index,
                 "{\"weight_map\": {\"b\": \"two.safetensors\", \"a\": \"one.safetensors\", "
                 "\"c\": \"one.safetensors\"}}");
    w = expect_open(s->dir);
    assert_int_equal(rlhf__weights_count(w), 2);
    assert_non_null(strstr(rlhf__weights_find(w, "b")->file, "one.safetensors"));
    assert_null(rlhf__weights_find(w, "c"));
    rlhf__weights_close(w);
}

static void lying_indexes(void **state) {
    static const struct {
        const char *index, *part;
    } cases[] = {
        {"{\"weight_map\": {\"b\": \"../one.safetensors\"}}",
         "the entry of 'b', '../one.safetensors', is not the name of a file in the same folder"},
        {"{\"weight_map\": {\"b\": \"/etc/passwd\"}}",
         "is not the name of a file in the same folder"},
        {"{\"weight_map\": {\"b\": \"\"}}", "'', is not the name of a file in the same folder"},
        {"{\"weight_map\": {\"b\": \"..\"}}", "..: is a directory"},
        {"{\"weight_map\": {\"b\": 3}}", "the entry of 'b' is an integer, expected the name"},
        {"{\"weight_map\": {\"b\": null}}", "the entry of 'b' is null, expected the name"},
        {"{\"weight_map\": {\"b\": \"gone.safetensors\"}}",
         "the shard gone.safetensors, which weight_map names for 'b', is not there; was all of "
         "the"},
        {"{\"weight_map\": {\"b\": \"pipe.safetensors\"}}",
         "pipe.safetensors is not a regular file"}, // and the program does not wait for it
        {"{\"weight_map\": {\"b\": \"model.safetensors.index.json\"}}", "no safetensors file"},
        {"{}", "weight_map is missing, expected an object"},
        {"{\"weight_map\": []}", "weight_map is a list, expected an object"},
        {"[]", "weight_map is missing"},
        {"{\"weight_map\": {\"b\": \"one.safetensors\", \"b\": \"one.safetensors\"}}", "duplicate"},
        {"{\"weight_map\": {\"b\": \"one.safetensors\", \"a\": \"both.safetensors\"}}",
         "tensor 'b' is in both"},
    };
    struct scratch *s = *state;
    make_file(s, "one.safetensors",
              "{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4);
    make_file(s, "two.safetensors",
              "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2);
    make_file(s, "both.safetensors",
              "{\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 2);
    assert_int_equal(mkfifo(scratch_path(s, "pipe.safetensors"), 0600), 0);
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        scratch_text(s, "model.safetensors.index.json", cases[i].index);
        expect_error(s->dir, RLHF_E_INVALID, cases[i].part);
        expect_error(s->dir, RLHF_E_INVALID, "model.safetensors.index.json"); // with its name
    }
}

static void writer_refusals(void **state) {
    struct scratch *s = *state;
    const char *path = scratch_path(s, "w.safetensors");
    struct rlhf__weights_writer *w = NULL;
    struct rlhf__error err = {0};
    const struct rlhf__tensor_spec twice[] = {{"a", RLHF__TENSOR_F32, 1, {1}},
                                              {"a", RLHF__TENSOR_F32, 1, {1}}};
    check_error(rlhf__weights_writer_open(NULL, path, twice, 2, NULL, 0, &w, &err), RLHF_E_INVALID,
                &err, "'a' is taken");
    const struct rlhf__tensor_spec uneven[] = {{"a", RLHF__TENSOR_BF16, 1, {1}},
                                               {"b", RLHF__TENSOR_F32, 1, {1}}};
    check_error(rlhf__weights_writer_open(NULL, path, uneven, 2, NULL, 0, &w, &err), RLHF_E_INVALID,
                &err, "'b' would be unaligned");
    const struct rlhf__tensor_spec huge[] = {{"a", RLHF__TENSOR_F32, 2, {INT64_MAX, 4}}};
    check_error(rlhf__weights_writer_open(NULL, path, huge, 1, NULL, 0, &w, &err), RLHF_E_INVALID,
                &err, "bad dtype or shape");
    check_ok(rlhf__weights_writer_open(NULL, path, uneven, 1, NULL, 0, &w, &err), &err);
    check_error(rlhf__weights_put_f32(w, wide, 2, &err), RLHF_E_INVALID, &err, "more data");
    check_error(rlhf__weights_commit(w, &err), RLHF_E_INVALID, &err, "got 0 of its 2 bytes");
    assert_false(rlhf__is_file(path)); // all files are gone
    check_ok(rlhf__weights_writer_open(NULL, path, uneven, 1, NULL, 0, &w, &err), &err);
    check_ok(rlhf__weights_put_f32(w, wide, 1, &err), &err);
    check_error(rlhf__weights_put_f32(w, wide, 1, &err), RLHF_E_INVALID, &err, "more data");
    rlhf__weights_abort(w);
    assert_false(rlhf__is_file(path));
    check_error(
        rlhf__weights_writer_open(NULL, scratch_path(s, "no/dir/w"), uneven, 1, NULL, 0, &w, &err),
        RLHF_E_IO, &err, "no/dir/w");
}

// The Python package wrote this file (make_golden.py). Reading it gives the original numbers.
static void written_by_python(void **state) {
    (void)state;
    static const float values[] = {0.0f, -0.0f, 1.0f, -2.5f, 0.1f, 65504.0f, 1e-7f, 3.0f};
    struct rlhf__weights *w = expect_open("data/python.safetensors");
    struct rlhf__error err = {0};
    float got[8];
    assert_int_equal(rlhf__weights_count(w), 5);
    assert_string_equal(rlhf__weights_metadata(w, "made by"), "torch");
    check_ok(read_f32(rlhf__weights_find(w, "f32"), got, &err), &err);
    assert_memory_equal(got, values, sizeof values);
    check_ok(read_f32(rlhf__weights_find(w, "f16"), got, &err), &err);
    for (int i = 0; i < 8; i++)
        assert_true(fabsf(got[i] - values[i]) <= fabsf(values[i]) / 2e3f + 3e-8f);
    const struct rlhf__tensor *t = rlhf__weights_find(w, "bf16");
    assert_int_equal(t->ndim, 3);
    check_ok(read_f32(t, got, &err), &err);
    for (int i = 0; i < 8; i++)
        assert_true(fabsf(got[i] - values[i]) <= fabsf(values[i]) / 250.0f);
    assert_int_equal(rlhf__weights_find(w, "i64")->dtype, RLHF__TENSOR_I64);
    assert_int_equal(rlhf__weights_find(w, "none")->shape[1], 3);
    rlhf__weights_close(w);
}

// A limit on file size simulates a full disk. The failure is reported, and the old file stays.
static void disk_full(void **state) {
    struct scratch *s = *state;
    const char *path = scratch_text(s, "full.safetensors", "old");
    struct rlhf__tensor_spec big = {"big", RLHF__TENSOR_BF16, 1, {1 << 20}};
    struct rlhf__weights_writer *w = NULL;
    struct rlhf__error err = {0};
    struct rlimit limit, small;
    float *zeros = calloc(1 << 20, sizeof *zeros);
    assert_non_null(zeros);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = limit;
    small.rlim_cur = 1 << 20;
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    rlhf_status st = rlhf__weights_writer_open(NULL, path, &big, 1, NULL, 0, &w, &err);
    if (st == RLHF_OK) st = rlhf__weights_put_f32(w, zeros, 1 << 20, &err);
    if (st == RLHF_OK)
        st = rlhf__weights_commit(w, &err);
    else
        rlhf__weights_abort(w);
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, before);
    free(zeros);
    check_error(st, RLHF_E_IO, &err, "full.safetensors");
    struct rlhf__buf old = RLHF__BUF_INIT;
    check_ok(rlhf__file_read(path, 100, &old, &err), &err);
    assert_string_equal(old.data, "old");
    rlhf__buf_finish(&old);
}

static void metadata(void **state) {
    static const char *const meta[][2] = {{"step", "12"}, {"note", "a \"b\" \xC3\xA9"}};
    const char *path = scratch_path(*state, "m.safetensors");
    struct rlhf__weights_writer *w = NULL;
    struct rlhf__error err = {0};
    check_ok(rlhf__weights_writer_open(NULL, path, NULL, 0, meta, 2, &w, &err), &err);
    check_ok(rlhf__weights_commit(w, &err), &err);
    struct rlhf__weights *r = expect_open(path);
    assert_string_equal(rlhf__weights_metadata(r, "step"), "12");
    assert_string_equal(rlhf__weights_metadata(r, "note"), meta[1][1]);
    assert_int_equal(rlhf__weights_count(r), 0);
    rlhf__weights_close(r);
}

// The directory of a Gemma 3 that also reads images, with the names of transformers before and
// after 4.52, and of a Qwen3.5 with and without images: only the language model's tensors, with the
// names that they have without the rest.
static void language_model_inside(void **state) {
    struct scratch *s = *state;
    static const char *const names[][4] = {
        {"language_model.model.norm.weight", "language_model.lm_head.weight",
         "multi_modal_projector.mm_soft_emb_norm.weight", "vision_tower.a.bias"},
        {"model.language_model.norm.weight", "lm_head.weight",
         "model.multi_modal_projector.mm_soft_emb_norm.weight", "model.vision_tower.a.bias"},
        {"model.language_model.norm.weight", "lm_head.weight", "mtp.layers.0.mlp.up_proj.weight",
         "model.visual.blocks.0.norm1.bias"},
        {"model.norm.weight", "lm_head.weight", "mtp.norm.weight", "mtp.fc.weight"}};
    static const char *const configs[] = {
        "{\"model_type\": \"gemma3\"}", "{\"model_type\": \"gemma3\"}",
        "{\"model_type\": \"qwen3_5\"}", "{\"model_type\": \"qwen3_5_text\"}"};
    struct rlhf__error err = {0};
    struct rlhf__weights *w;
    float x;
    for (size_t i = 0; i < CHECK_COUNT(names); i++) {
        char header[1024];
        int n = snprintf(header, sizeof header, "{");
        for (int k = 0; k < 4; k++)
            n += snprintf(header + n, sizeof header - (size_t)n,
                          "%s\"%s\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [%d, "
                          "%d]}",
                          k ? ", " : "", names[i][k], 4 * k, 4 * k + 4);
        snprintf(header + n, sizeof header - (size_t)n, "}");
        make_file(s, "model.safetensors", header, 16);
        scratch_text(s, "config.json", configs[i]);
        check_ok(rlhf__weights_open(s->dir, &w, &err), &err);
        assert_int_equal(rlhf__weights_count(w), 2);
        assert_int_equal(rlhf__weights_left_out(w), 2);
        check_ok(read_f32(rlhf__weights_find(w, "model.norm.weight"), &x, &err), &err);
        const uint8_t bytes[] = {0, 1, 2, 3};
        assert_memory_equal(&x, bytes, sizeof x);
        assert_non_null(rlhf__weights_find(w, "lm_head.weight"));
        rlhf__weights_close(w);
        scratch_text(s, "config.json", "{\"model_type\": \"other\"}");
        check_ok(rlhf__weights_open(s->dir, &w, &err), &err);
        assert_int_equal(rlhf__weights_count(w), 4);
        assert_int_equal(rlhf__weights_left_out(w), 0);
        rlhf__weights_close(w);
    }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(round_trip),
        TEST(same_input_same_bytes),
        TEST(lies),
        TEST(bad_files),
        TEST(other_formats),
        TEST(cut_while_read),
        TEST(shards),
        TEST(language_model_inside),
        TEST(lying_indexes),
        TEST(writer_refusals),
        TEST(metadata),
        TEST(disk_full),
        TEST(written_by_python),
    };
    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
