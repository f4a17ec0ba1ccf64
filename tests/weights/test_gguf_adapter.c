// test_gguf_adapter.c: adapters as llama.cpp's LoRA files, byte by byte.
#include "gguf_model.h"

#include "gguf_write/gguf_adapter.h"
#include "weights/rounding.h"
#include "weights/safetensors.h"

enum { MOST = 8, ELEMENTS = 64 };

struct lora {
    struct scratch *s;
    struct rlhf__tensor tensor[MOST];
    const struct rlhf__tensor *list[MOST];
    float data[MOST][ELEMENTS];
    size_t n;
    json_t *config;
    struct rlhf__peft peft;
    struct rlhf__weights *weights;
    struct rlhf__buf file;
};

// Element i of tensor k is k + i / 64.
static void add(struct lora *l, const char *name, int64_t rows, int64_t columns) {
    struct rlhf__tensor *t = &l->tensor[l->n];
    assert_true(l->n < MOST && rows * columns <= ELEMENTS);
    for (int i = 0; i < ELEMENTS; i++)
        l->data[l->n][i] = (float)l->n + (float)i / 64;
    *t = (struct rlhf__tensor){.name = name,
                               .file = "memory",
                               .dtype = RLHF__TENSOR_F32,
                               .ndim = 2,
                               .shape = {rows, columns},
                               .count = rows * columns,
                               .n_bytes = (uint64_t)(rows * columns) * 4,
                               .data = (const uint8_t *)l->data[l->n]};
    l->list[l->n] = t;
    l->n++;
}

static void begin(struct lora *l, struct scratch *s, const char *config) {
    *l = (struct lora){.s = s, .config = json_loads(config, 0, NULL)};
    l->peft.rank = 2;
    l->peft.alpha = 6;
    assert_non_null(l->config);
}

static rlhf_status put_file(struct lora *l, int32_t dtype, const char *name,
                            struct rlhf__error *err) {
    struct rlhf__folder *in = NULL;
    char path[RLHF__PATH_CAP];
    const struct rlhf__rounded_file file = {.tensor = l->list, .n = l->n, .dtype = -1};
    assert_int_equal(rlhf__folder_open(NULL, l->s->dir, &in, err), RLHF_OK);
    assert_int_equal(rlhf__rounded_write(&file, in, "a.safetensors", err), RLHF_OK);
    rlhf__path_put(path, "%s/a.safetensors", l->s->dir);
    assert_int_equal(rlhf__weights_open(path, &l->weights, err), RLHF_OK);
    const struct rlhf__gguf_adapter a = {.dir = "DIR",
                                         .name = "tuned",
                                         .config = l->config,
                                         .peft = &l->peft,
                                         .weights = l->weights,
                                         .dtype = dtype};
    const rlhf_status st = rlhf__gguf_adapter_write(&a, in, name, err);
    rlhf__folder_close(in);
    return st;
}

static const uint8_t *written(struct lora *l, int32_t dtype, size_t *len) {
    struct rlhf__error err = {0, ""};
    char path[RLHF__PATH_CAP];
    if (put_file(l, dtype, "a.gguf", &err) != RLHF_OK) fail_msg("%s", err.text);
    rlhf__path_put(path, "%s/a.gguf", l->s->dir);
    assert_int_equal(rlhf__file_read(path, 1 << 20, &l->file, &err), RLHF_OK);
    *len = l->file.len;
    return (const uint8_t *)l->file.data;
}

static void end(struct lora *l) {
    json_decref(l->config);
    rlhf__weights_close(l->weights);
    rlhf__buf_finish(&l->file);
}

#define LAYER RLHF__PEFT_PREFIX "model.layers.0."

// The rows of B have the order of the rows of the weight; A is unchanged.
static void llama(void **state) {
    struct lora l;
    struct reader r;
    size_t len;
    begin(&l, *state, "{" LLAMA "}");
    add(&l, LAYER "mlp.down_proj.lora_A.weight", 2, 3);
    add(&l, LAYER "mlp.down_proj.lora_B.weight", 4, 2);
    add(&l, LAYER "self_attn.q_proj.lora_A.weight", 2, 4);
    add(&l, LAYER "self_attn.q_proj.lora_B.weight", 8, 2);
    const uint8_t *bytes = written(&l, RLHF__TENSOR_F32, &len);
    assert_string_equal(reader_head(&r, bytes, len),
                        "general.architecture 8 llama\n"
                        "general.type 8 adapter\n"
                        "general.name 8 tuned\n"
                        "adapter.type 8 lora\n"
                        "adapter.lora.alpha 6 6\n"
                        "blk.0.ffn_down.weight.lora_a 3 2 type 0 at 0\n"
                        "blk.0.ffn_down.weight.lora_b 2 4 type 0 at 32\n"
                        "blk.0.attn_q.weight.lora_a 4 2 type 0 at 64\n"
                        "blk.0.attn_q.weight.lora_b 2 8 type 0 at 96\n");
    assert_memory_equal(r.p, l.data[0], 24);
    assert_memory_equal(r.p + 32, l.data[1], 32);
    assert_memory_equal(r.p + 64, l.data[2], 32);
    static const int order[] = {0, 2, 1, 3, 4, 6, 5, 7}; // two heads of 4
    for (int row = 0; row < 8; row++)
        assert_memory_equal(r.p + 96 + row * 8, l.data[3] + order[row] * 2, 8);
    rlhf__buf_finish(&r.out);
    end(&l);
}

// Names without PEFT's prefix, another dtype, and a scale of alpha / sqrt(rank).
static void plain_names(void **state) {
    struct lora l;
    struct reader r;
    size_t len;
    begin(&l, *state, "{" LLAMA "}");
    l.peft.rank = 4;
    l.peft.rslora = 1;
    add(&l, "model.layers.0.self_attn.v_proj.lora_A.weight", 4, 4);
    add(&l, "model.layers.0.self_attn.v_proj.lora_B.weight", 4, 4);
    const uint8_t *bytes = written(&l, RLHF__TENSOR_BF16, &len);
    const char *head = reader_head(&r, bytes, len);
    assert_non_null(strstr(head, "\nadapter.lora.alpha 6 12\n")); // 12 / 4 = 6 / sqrt(4)
    assert_non_null(strstr(head, "\nblk.0.attn_v.weight.lora_b 4 4 type 30 at 32\n"));
    rlhf__buf_finish(&r.out);
    end(&l);
}

// GPT-2 stores weights as [inputs, outputs], but not the matrices of an adapter.
static void gpt2(void **state) {
    struct lora l;
    struct reader r;
    size_t len;
    begin(&l, *state,
          "{\"model_type\": \"gpt2\", \"architectures\": [\"GPT2LMHeadModel\"], \"vocab_size\": 9, "
          "\"n_embd\": 2, \"n_layer\": 1, \"n_head\": 1, \"n_positions\": 3}");
    add(&l, RLHF__PEFT_PREFIX "transformer.h.0.attn.c_attn.lora_A.weight", 2, 2);
    add(&l, RLHF__PEFT_PREFIX "transformer.h.0.attn.c_attn.lora_B.weight", 6, 2);
    const uint8_t *bytes = written(&l, RLHF__TENSOR_F32, &len);
    assert_non_null(strstr(reader_head(&r, bytes, len), "\nblk.0.attn_qkv.weight.lora_a 2 2 type "
                                                        "0 at 0\nblk.0.attn_qkv.weight.lora_b 2 6 "
                                                        "type 0 at 32\n"));
    assert_memory_equal(r.p, l.data[0], 16);
    assert_memory_equal(r.p + 32, l.data[1], 48);
    rlhf__buf_finish(&r.out);
    end(&l);
}

// The fused MLP input of Granite becomes two tensors. Both have the same A.
static void granite(void **state) {
    struct lora l;
    struct reader r;
    size_t len;
    begin(&l, *state,
          "{\"model_type\": \"granitemoehybrid\", \"architectures\": "
          "[\"GraniteMoeHybridForCausalLM\"], \"vocab_size\": 9, \"hidden_size\": 4, "
          "\"shared_intermediate_size\": 3, \"num_hidden_layers\": 1, \"num_attention_heads\": 1, "
          "\"num_key_value_heads\": 1, \"max_position_embeddings\": 16, \"rms_norm_eps\": 0.5}");
    add(&l, LAYER "shared_mlp.input_linear.lora_A.weight", 2, 4);
    add(&l, LAYER "shared_mlp.input_linear.lora_B.weight", 6, 2);
    const uint8_t *bytes = written(&l, RLHF__TENSOR_F32, &len);
    assert_non_null(strstr(reader_head(&r, bytes, len),
                           "\nblk.0.ffn_gate.weight.lora_a 4 2 type 0 at 0\n"
                           "blk.0.ffn_gate.weight.lora_b 2 3 type 0 at 32\n"
                           "blk.0.ffn_up.weight.lora_a 4 2 type 0 at 64\n"
                           "blk.0.ffn_up.weight.lora_b 2 3 type 0 at 96\n"));
    assert_memory_equal(r.p, l.data[0], 32);
    assert_memory_equal(r.p + 32, l.data[1], 24);
    assert_memory_equal(r.p + 64, l.data[0], 32);
    assert_memory_equal(r.p + 96, l.data[1] + 6, 24);
    rlhf__buf_finish(&r.out);
    end(&l);
}

static void refused(void **state) {
    static const struct {
        const char *config, *a, *b, *says;
        int64_t rank;
    } cases[] = {
        {"{" LLAMA "}", RLHF__PEFT_PREFIX "score.weight", NULL,
         "has the score head base_model.model.score.weight, which a GGUF file cannot hold", 2},
        {"{" LLAMA "}", RLHF__PEFT_PREFIX "lm_head.lora_A.weight",
         RLHF__PEFT_PREFIX "lm_head.lora_B.weight", "changes the LM head, which is the embedding",
         2},
        {"{" LLAMA "}", LAYER "self_attn.o_proj.lora_A.weight",
         LAYER "self_attn.v_proj.lora_B.weight", "has no pair of matrices of rank 2", 2},
        {"{" LLAMA "}", LAYER "self_attn.v_proj.lora_A.weight",
         LAYER "self_attn.v_proj.lora_B.weight", "has no pair of matrices of rank 2", 3},
        {"{" LLAMA "}", LAYER "self_attn.g_proj.lora_A.weight",
         LAYER "self_attn.g_proj.lora_B.weight", "self_attn.g_proj.weight is not supported", 2},
        {"{\"model_type\": \"bert\"}", LAYER "self_attn.v_proj.lora_A.weight",
         LAYER "self_attn.v_proj.lora_B.weight", "this is bert", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lora l;
        struct rlhf__error err = {0, ""};
        begin(&l, *state, cases[i].config);
        add(&l, cases[i].a, cases[i].rank, 4);
        if (cases[i].b) add(&l, cases[i].b, 4, cases[i].rank);
        assert_int_equal(put_file(&l, RLHF__TENSOR_F32, "no.gguf", &err), RLHF_E_INVALID);
        if (!strstr(err.text, cases[i].says)) fail_msg("%s\nlacks: %s", err.text, cases[i].says);
        end(&l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(llama, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(plain_names, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(gpt2, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(granite, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(refused, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("gguf_adapter", tests, NULL, NULL);
}
