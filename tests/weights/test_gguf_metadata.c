// test_gguf_metadata.c: keys and tensors that do not make a model are refused in one sentence, and
// keys that a file may lack have their defaults.
#include "support/scratch.h"

#include "gguf_write/gguf_writer.h"
#include "weights/gguf_weights.h"
#include "weights/hf_dir.h"
#include "weights/safetensors.h"
#include "weights/wrong_dir.h"

// ---- a file ----

static const struct {
    const char *key;
    uint32_t value;
} numbers[] = {{"llama.context_length", 16},       {"llama.embedding_length", 8},
               {"llama.block_count", 1},           {"llama.feed_forward_length", 3},
               {"llama.attention.head_count", 2},  {"llama.attention.head_count_kv", 1},
               {"tokenizer.ggml.bos_token_id", 1}, {"tokenizer.ggml.eos_token_id", 77}};

// A change of the file. kind: u, f, b or s, a key with this value; 0: no key.
struct change {
    const char *without, *key;
    char kind;
    double number;
    const char *text;
    const char *tensor; // one more, of `rows` rows of 8 elements
    int64_t rows;
};

static void put_keys(struct rlhf__gguf *g, const struct change *c) {
    const char *without = c->without ? c->without : "";
    if (strcmp(without, "general.architecture") != 0)
        rlhf__gguf_str(g, "general.architecture", "llama");
    for (size_t i = 0; i < CHECK_COUNT(numbers); i++)
        if (strcmp(without, numbers[i].key) != 0)
            rlhf__gguf_u32(g, numbers[i].key, numbers[i].value);
    if (strcmp(without, "llama.attention.layer_norm_rms_epsilon") != 0)
        rlhf__gguf_f32(g, "llama.attention.layer_norm_rms_epsilon", 1e-5);
    if (c->kind == 'u') rlhf__gguf_u32(g, c->key, (uint32_t)c->number);
    if (c->kind == 'f') rlhf__gguf_f32(g, c->key, c->number);
    if (c->kind == 'b') rlhf__gguf_bool(g, c->key, (int)c->number);
    if (c->kind == 's') rlhf__gguf_str(g, c->key, c->text);
}

// The tensors of the model; those with 0 columns are vectors.
static const struct {
    const char *name;
    int64_t rows, columns;
} whole[] = {{"token_embd.weight", 6, 8},        {"output_norm.weight", 8, 0},
             {"blk.0.attn_norm.weight", 8, 0},   {"blk.0.attn_q.weight", 8, 8},
             {"blk.0.attn_k.weight", 4, 8},      {"blk.0.attn_v.weight", 4, 8},
             {"blk.0.attn_output.weight", 8, 8}, {"blk.0.ffn_norm.weight", 8, 0},
             {"blk.0.ffn_gate.weight", 3, 8},    {"blk.0.ffn_up.weight", 3, 8},
             {"blk.0.ffn_down.weight", 8, 3}};

// Lists a tensor, if `g` has not begun, or else writes its numbers.
static void put_tensor(struct rlhf__gguf *g, int begun, const char *name, int64_t rows,
                       int64_t columns) {
    static const float ones[64] = {1, 1, 1, 1, 1, 1, 1, 1};
    const int64_t shape[2] = {rows, columns}, n = rows * (columns ? columns : 1);
    struct rlhf__error err = {0};
    assert_in_range(n, 1, 64);
    check_ok(begun ? rlhf__gguf_put(g, ones, (size_t)n * sizeof *ones, &err)
                   : rlhf__gguf_tensor(g, name, RLHF__TENSOR_F32, columns ? 2 : 1, shape, &err),
             &err);
}

static const char *make(struct scratch *s, const struct change *c) {
    struct rlhf__gguf *g = rlhf__gguf_writer_open();
    struct rlhf__error err = {0};
    const char *path = scratch_path(s, "m.gguf");
    assert_non_null(g);
    put_keys(g, c);
    for (int begun = 0; begun < 2; begun++) {
        int known = !c->tensor;
        if (begun) check_ok(rlhf__gguf_begin(g, NULL, path, &err), &err);
        for (size_t i = 0; i < CHECK_COUNT(whole); i++) {
            const int other = c->tensor && strcmp(c->tensor, whole[i].name) == 0;
            known |= other;
            if (!c->without || strcmp(c->without, whole[i].name) != 0)
                put_tensor(g, begun, whole[i].name, other ? c->rows : whole[i].rows,
                           whole[i].columns);
        }
        if (!known) put_tensor(g, begun, c->tensor, c->rows, c->tensor[0] == 'b' ? 8 : 0);
    }
    check_ok(rlhf__gguf_commit(g, &err), &err);
    return path;
}

// ---- what is refused ----

static const struct {
    struct change change;
    rlhf_status status;
    const char *part;
} cases[] = {
    {{.without = "general.architecture"}, RLHF_E_INVALID, "general.architecture is missing"},
    {{.without = "general.architecture",
      .key = "general.architecture",
      .kind = 's',
      .text = "mamba\x1b"},
     RLHF_E_UNSUPPORTED,
     "the architecture mamba? is not read; supported: llama, qwen2, "},
    {{.without = "general.architecture", .key = "general.architecture", .kind = 'u', .number = 3},
     RLHF_E_INVALID,
     "the key general.architecture is a 32-bit integer, expected a string"},
    {{.key = "general.type", .kind = 's', .text = "adapter"},
     RLHF_E_UNSUPPORTED,
     "the key general.type is adapter, expected model; an adapter is read only as PEFT writes it"},
    {{.key = "general.type", .kind = 's', .text = "mmproj"},
     RLHF_E_UNSUPPORTED,
     "the key general.type is mmproj, expected model; "},
    {{.without = "llama.block_count"}, RLHF_E_INVALID, "the key llama.block_count is missing"},
    {{.without = "llama.attention.layer_norm_rms_epsilon"},
     RLHF_E_INVALID,
     "the key llama.attention.layer_norm_rms_epsilon is missing"},
    {{.without = "llama.block_count", .key = "llama.block_count", .kind = 'u', .number = 0},
     RLHF_E_INVALID,
     "the key llama.block_count is 0, expected an integer from 1 to 4096"},
    {{.without = "llama.context_length", .key = "llama.context_length", .kind = 'f', .number = 9},
     RLHF_E_INVALID,
     "the key llama.context_length is a 32-bit number, expected an integer"},
    {{.without = "token_embd.weight"}, RLHF_E_INVALID, "the tensor token_embd.weight is missing"},
    {{.key = "llama.expert_count", .kind = 'u', .number = 8},
     RLHF_E_UNSUPPORTED,
     "the key llama.expert_count is 8; models of experts are not read"},
    {{.key = "llama.attention.value_length", .kind = 'u', .number = 8},
     RLHF_E_UNSUPPORTED,
     "heads of 4 elements of keys and 8 of values"},
    {{.key = "llama.rope.dimension_count", .kind = 'u', .number = 2},
     RLHF_E_INVALID,
     "the key llama.rope.dimension_count is 2, expected an integer from 4 to 4"},
    {{.key = "llama.rope.freq_base", .kind = 'f', .number = -1},
     RLHF_E_INVALID,
     "the key llama.rope.freq_base is -1, expected more than 0"},
    {{.key = "llama.rope.scaling.type", .kind = 's', .text = "ntk"},
     RLHF_E_UNSUPPORTED,
     "the key llama.rope.scaling.type is neither none nor linear nor yarn"},
    {{.key = "llama.rope.scaling.attn_factor", .kind = 'f', .number = 2},
     RLHF_E_UNSUPPORTED,
     "the key llama.rope.scaling.attn_factor is 2; only 1 is read"},
    {{.tensor = "rope_freqs.weight", .rows = 3},
     RLHF_E_INVALID,
     "rope_freqs.weight has 3 elements, expected 2"},
    {{.tensor = "blk.0.ffn_gate_exps.weight", .rows = 1},
     RLHF_E_INVALID,
     "tensor blk.0.ffn_gate_exps.weight is not one of llama.cpp's architecture llama"},
    {{.tensor = "blk.00.ffn_up.weight", .rows = 1},
     RLHF_E_INVALID,
     "tensor blk.00.ffn_up.weight is not one of"},
    {{.tensor = "blk.0.attn_q.weight", .rows = 7},
     RLHF_E_INVALID,
     "tensor blk.0.attn_q.weight has shape [7, 8]; by the file's keys it would be [8, 8]"},
    {{.tensor = "blk.0.attn_v.weight", .rows = 5},
     RLHF_E_INVALID,
     "tensor blk.0.attn_v.weight has shape [5, 8]; by the file's keys it would be [4, 8]"},
    {{.tensor = "blk.0.ffn_down.weight", .rows = 9},
     RLHF_E_INVALID,
     "tensor blk.0.ffn_down.weight has shape [9, 3]; by the file's keys it would be [8, 3]"},
    {{.tensor = "blk.0.ffn_norm.weight", .rows = 9},
     RLHF_E_INVALID,
     "tensor blk.0.ffn_norm.weight has shape [9]; by the file's keys it would be [8]"},
    {{.tensor = "blk.0.attn_q.bias", .rows = 1},
     RLHF_E_INVALID,
     "tensor blk.0.attn_q.bias has shape [1, 8]; by the file's keys it would be [8]"},
    {{.tensor = "blk.1.ffn_norm.weight", .rows = 1},
     RLHF_E_INVALID,
     "tensor blk.1.ffn_norm.weight is of layer 1, but the key llama.block_count is 1"},
    {{.without = "blk.0.ffn_up.weight"},
     RLHF_E_INVALID,
     "the tensor blk.0.ffn_up.weight is missing, which a model of the architecture llama needs"},
    {{.without = "output_norm.weight"}, RLHF_E_INVALID, "the tensor output_norm.weight is missing"},
    {{.without = "llama.feed_forward_length"},
     RLHF_E_INVALID,
     "the key llama.feed_forward_length is missing"},
};

static void refused(void **state) {
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__weights *w = NULL;
        struct rlhf__error err = {0};
        json_t *config = NULL;
        const char *path = make(*state, &cases[i].change);
        check_error(rlhf__weights_open(path, &w, &err), cases[i].status, &err, cases[i].part);
        check_error(err.code, cases[i].status, &err, "m.gguf: ");
        assert_null(w);
        // The config needs only the keys, the embedding and the divisors of rotary positions.
        const char *with = cases[i].change.tensor, *without = cases[i].change.without;
        if ((with && with[0] == 'b') || (without && strncmp(without, "blk.", 4) == 0) ||
            (without && strcmp(without, "output_norm.weight") == 0))
            continue;
        check_error(rlhf__hf_config_read(path, &config, &err), cases[i].status, &err,
                    cases[i].part);
        assert_null(config);
    }
}

// The writer has no integers, so the type of a tensor is changed in the file.
static void integers(void **state) {
    static const struct change none = {.without = ""};
    static const char name[] = "blk.0.ffn_norm.weight";
    struct rlhf__error err = {0};
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__weights *w = NULL;
    check_ok(rlhf__file_read(make(*state, &none), 1 << 16, &text, &err), &err);
    char *at = memmem(text.data, text.len, name, sizeof name - 1);
    assert_non_null(at);
    at[sizeof name - 1 + 4 + 8] = 26; // after the number of dimensions and the dimension: I32
    const char *path = scratch_bytes(*state, "i.gguf", text.data, text.len);
    check_error(rlhf__weights_open(path, &w, &err), RLHF_E_UNSUPPORTED, &err,
                "i.gguf: tensor blk.0.ffn_norm.weight is I32; weights must be F32, F16 or BF16");
    assert_null(w);
    rlhf__buf_finish(&text);
}

// With a base of 1, all pairs have the same wavelength, so no bands follow from the divisors.
static void bands_without_width(void **state) {
    static const struct change wide = {
        .key = "llama.attention.key_length", .kind = 'u', .number = 8};
    static const float divisors[8] = {2, 2, 2, 8}; // 16 bytes of them, then the alignment
    static const float table[6 * 8] = {1};
    static const int64_t shape[2] = {6, 8}, n = 4;
    struct rlhf__error err = {0};
    json_t *config = NULL;
    struct rlhf__gguf *g = rlhf__gguf_writer_open();
    const char *path = scratch_path(*state, "m.gguf");
    assert_non_null(g);
    put_keys(g, &wide);
    rlhf__gguf_f32(g, "llama.rope.freq_base", 1);
    check_ok(rlhf__gguf_tensor(g, "rope_freqs.weight", RLHF__TENSOR_F32, 1, &n, &err), &err);
    check_ok(rlhf__gguf_tensor(g, "token_embd.weight", RLHF__TENSOR_F32, 2, shape, &err), &err);
    check_ok(rlhf__gguf_begin(g, NULL, path, &err), &err);
    check_ok(rlhf__gguf_put(g, divisors, 16, &err), &err);
    check_ok(rlhf__gguf_put(g, table, sizeof table, &err), &err);
    check_ok(rlhf__gguf_commit(g, &err), &err);
    check_error(rlhf__hf_config_read(path, &config, &err), RLHF_E_UNSUPPORTED, &err,
                "m.gguf: the divisors in rope_freqs.weight are not those of the type llama3");
    assert_null(config);
}

// ---- what is read ----

static void defaults(void **state) {
    static const struct change none = {.without = "llama.attention.head_count_kv"};
    struct rlhf__error err = {0};
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__weights *w = NULL;
    json_t *config = NULL;
    const char *path = make(*state, &none);
    check_ok(rlhf__hf_config_read(path, &config, &err), &err);
    assert_int_equal(json_integer_value(json_object_get(config, "num_key_value_heads")), 2);
    assert_int_equal(json_integer_value(json_object_get(config, "head_dim")), 4);
    assert_int_equal(json_integer_value(json_object_get(config, "vocab_size")), 6);
    assert_int_equal(json_integer_value(json_object_get(config, "bos_token_id")), 1);
    assert_null(json_object_get(config, "eos_token_id")); // 77 is not in the vocabulary
    assert_true(json_is_true(json_object_get(config, "tie_word_embeddings")));
    const json_t *rope = json_object_get(config, "rope_parameters");
    assert_true(json_real_value(json_object_get(rope, "rope_theta")) == 10000);
    json_decref(config);
    check_ok(rlhf__gguf_describe(path, &text, &err), &err);
    assert_string_equal(rlhf__buf_text(&text), "llama; 11 tensors in F32; 1 KiB");
    rlhf__buf_finish(&text);
    path = make(*state, &(struct change){.without = ""});
    check_ok(rlhf__weights_open(path, &w, &err), &err);
    assert_true(rlhf__weights_exist(path));
    check_error(rlhf__wrong_head(path, "classifier", &err), RLHF_E_INVALID, &err,
                "m.gguf: a GGUF file holds a language model without a score head, so it is not a");
    assert_non_null(rlhf__weights_find(w, "model.embed_tokens.weight"));
    rlhf__weights_close(w);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {TEST(refused), TEST(integers), TEST(bands_without_width),
                                       TEST(defaults)};
    return cmocka_run_group_tests_name("gguf_metadata", tests, NULL, NULL);
}
