// test_gguf.c: GGUF files byte by byte, read by a reader of the test's own; and what is refused.
#include "support/scratch.h"

#include "base/file.h"
#include "base/json.h"
#include "weights/gguf.h"

// ---- a reader: the head of a file as lines of text ----

struct reader {
    const uint8_t *p, *end;
    struct rlhf__buf out;
};

static uint64_t number(struct reader *r, int bytes) {
    uint64_t v = 0;
    assert_true(r->end - r->p >= bytes);
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)r->p[i] << (8 * i);
    r->p += bytes;
    return v;
}

static void text(struct reader *r) {
    const uint64_t n = number(r, 8);
    assert_true((uint64_t)(r->end - r->p) >= n);
    rlhf__buf_put(&r->out, r->p, n);
    r->p += n;
}

static void value(struct reader *r, uint64_t type) {
    uint32_t bits;
    float f;
    uint64_t n;
    switch (type) {
    case 4:
    case 5:
        rlhf__buf_printf(&r->out, "%d", (int)(int32_t)number(r, 4));
        break;
    case 6:
        bits = (uint32_t)number(r, 4);
        memcpy(&f, &bits, sizeof f);
        rlhf__buf_printf(&r->out, "%g", (double)f);
        break;
    case 7:
        rlhf__buf_puts(&r->out, number(r, 1) ? "true" : "false");
        break;
    case 8:
        text(r);
        break;
    case 9:
        type = number(r, 4);
        n = number(r, 8);
        for (uint64_t i = 0; i < n; i++) {
            if (i) rlhf__buf_putc(&r->out, ',');
            value(r, type);
        }
        break;
    default:
        fail_msg("type %llu", (unsigned long long)type);
    }
}

// "key type value" and "tensor name shape type offset" lines; leaves r->p at the data.
static const char *head(struct reader *r, const uint8_t *bytes, size_t len) {
    *r = (struct reader){bytes, bytes + len, RLHF__BUF_INIT};
    assert_memory_equal(bytes, "GGUF", 4);
    r->p += 4;
    assert_int_equal(number(r, 4), 3);
    const uint64_t tensors = number(r, 8), keys = number(r, 8);
    for (uint64_t i = 0; i < keys; i++) {
        text(r);
        const uint64_t type = number(r, 4);
        rlhf__buf_printf(&r->out, " %d ", (int)type);
        value(r, type);
        rlhf__buf_putc(&r->out, '\n');
    }
    for (uint64_t i = 0; i < tensors; i++) {
        text(r);
        for (uint64_t d = number(r, 4); d > 0; d--)
            rlhf__buf_printf(&r->out, " %d", (int)number(r, 8));
        rlhf__buf_printf(&r->out, " type %d", (int)number(r, 4));
        rlhf__buf_printf(&r->out, " at %d\n", (int)number(r, 8));
    }
    while ((r->p - bytes) % 32)
        assert_int_equal(number(r, 1), 0);
    return rlhf__buf_text(&r->out);
}

// ---- models ----

#define MAX_TENSORS 24
#define JSON_BYTES  ", \"%s%s\": %d"

struct model {
    struct scratch *s;
    struct rlhf__gguf_model m;
    struct rlhf__tensor tensor[MAX_TENSORS];
    const struct rlhf__tensor *list[MAX_TENSORS];
    float data[MAX_TENSORS][1088];
    struct rlhf__buf file;
};

// Element i of tensor k is k + i / 64.
static void add(struct model *m, const char *name, int64_t rows, int64_t columns) {
    const size_t k = m->m.n++;
    const int64_t n = rows * (columns ? columns : 1);
    assert_true(k < MAX_TENSORS && n <= 1088);
    for (int64_t i = 0; i < n; i++)
        m->data[k][i] = (float)k + (float)i / 64;
    m->tensor[k] = (struct rlhf__tensor){.name = name,
                                         .file = "weights",
                                         .dtype = RLHF__TENSOR_F32,
                                         .ndim = columns ? 2 : 1,
                                         .shape = {rows, columns},
                                         .count = n,
                                         .n_bytes = (uint64_t)n * 4,
                                         .data = (const uint8_t *)m->data[k]};
    m->list[k] = &m->tensor[k];
}

// A byte-level vocabulary has a token for each byte: all but a and b, with ids from 5.
// form: of one, of a stand-in and its id.
static void put_bytes(struct rlhf__buf *out, const char *form) {
    for (int byte = 0, other = 256, id = 5; byte < 256; byte++) {
        const int itself = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
        const int c = itself ? byte : other++;
        char text[4] = {(char)c};
        if (byte == 'a' || byte == 'b') continue;
        if (c > 127) {
            text[0] = (char)(0xC0 | c >> 6);
            text[1] = (char)(0x80 | (c & 63));
        }
        const char *escape = strcmp(form, JSON_BYTES) == 0 && (c == '"' || c == '\\') ? "\\" : "";
        rlhf__buf_printf(out, form, escape, text, id++);
    }
}

// A file of the tokenizer; "@" in it: the tokens of bytes.
static void tokenizer_text(struct scratch *s, const char *name, const char *text) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    const char *at = strchr(text, '@');
    rlhf__buf_put(&out, text, at ? (size_t)(at - text) : strlen(text));
    if (at) put_bytes(&out, JSON_BYTES);
    if (at) rlhf__buf_puts(&out, at + 1);
    scratch_text(s, name, rlhf__buf_text(&out));
    rlhf__buf_free(&out);
}

static void begin(struct model *m, struct scratch *s, const char *config, const char *tokenizer) {
    struct rlhf__error err = {0};
    json_t *v = NULL;
    memset(m, 0, sizeof *m);
    m->s = s;
    check_ok(rlhf__json_parse("config", config, strlen(config), &v, &err), &err);
    tokenizer_text(s, "tokenizer.json", tokenizer);
    m->m = (struct rlhf__gguf_model){
        .dir = s->dir, .name = "tiny", .config = v, .tensor = m->list, .dtype = -1};
}

static void end(struct model *m) {
    rlhf__buf_free(&m->file);
    json_decref((json_t *)(uintptr_t)m->m.config);
}

static const uint8_t *written(struct model *m, size_t *len) {
    struct rlhf__error err = {0};
    const char *path = scratch_path(m->s, "tiny.gguf");
    check_ok(rlhf__gguf_check(&m->m, &err), &err);
    check_ok(rlhf__gguf_write(&m->m, NULL, path, &err), &err);
    check_ok(rlhf__file_read(path, 1 << 20, &m->file, &err), &err);
    *len = m->file.len;
    return (const uint8_t *)m->file.data;
}

static void refused_as(const struct model *m, rlhf_status status, const char *part) {
    struct rlhf__error err = {0};
    check_error(rlhf__gguf_check(&m->m, &err), status, &err, part);
}

static void refused(const struct model *m, const char *part) {
    refused_as(m, RLHF_E_INVALID, part);
}

#define LLAMA_OF(vocab)                                                                            \
    "\"model_type\": \"llama\", \"architectures\": [\"LlamaForCausalLM\"], \"vocab_size\": " vocab \
    ", \"hidden_size\": 4, \"intermediate_size\": 3, \"num_hidden_layers\": 1, "                   \
    "\"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"head_dim\": 4, "                    \
    "\"max_position_embeddings\": 16, \"rms_norm_eps\": 0.5, \"bos_token_id\": 1"
#define LLAMA LLAMA_OF("260")
#define BPE                                                                                        \
    "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"<s>\": 1, \"b\": 2, \"ab\": 3, "      \
    "\"<tool>\": 4@}, \"merges\": [[\"a\", \"b\"]]}, \"added_tokens\": [{\"id\": 1, \"content\": " \
    "\"<s>\", "                                                                                    \
    "\"special\": true}, {\"id\": 4, \"content\": \"<tool>\", \"special\": false}], "
#define BYTE_LEVEL "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": true}"
#define GPT2_FORM  BPE "\"pre_tokenizer\": " BYTE_LEVEL "}"

static void add_llama(struct model *m) {
    const json_t *rows = json_object_get(m->m.config, "vocab_size");
    add(m, "model.embed_tokens.weight", rows ? json_integer_value(rows) : 6, 4);
    add(m, "model.layers.0.input_layernorm.weight", 4, 0);
    add(m, "model.layers.0.self_attn.q_proj.weight", 8, 4);
    add(m, "model.layers.0.self_attn.k_proj.weight", 4, 4);
    add(m, "model.layers.0.self_attn.k_proj.bias", 4, 0);
    add(m, "model.layers.0.self_attn.v_proj.weight", 4, 4);
    add(m, "model.layers.0.self_attn.o_proj.weight", 4, 8);
    add(m, "model.layers.0.post_attention_layernorm.weight", 4, 0);
    add(m, "model.layers.0.mlp.gate_proj.weight", 3, 4);
    add(m, "model.layers.0.mlp.up_proj.weight", 3, 4);
    add(m, "model.layers.0.mlp.down_proj.weight", 4, 3);
    add(m, "model.norm.weight", 4, 0);
}

// ---- files ----

static void llama(void **state) {
    struct model m;
    struct reader r;
    size_t len;
    begin(&m, *state,
          "{" LLAMA ", \"rope_parameters\": {\"rope_type\": \"llama3\", \"rope_theta\": 9.0, "
          "\"factor\": 8.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, "
          "\"original_max_position_embeddings\": 32}}",
          GPT2_FORM);
    add_llama(&m);
    m.m.dtype = RLHF__TENSOR_BF16;
    const uint8_t *bytes = written(&m, &len);
    struct rlhf__buf tokens = RLHF__BUF_INIT, types = RLHF__BUF_INIT, says = RLHF__BUF_INIT;
    put_bytes(&tokens, ",%s%s");
    put_bytes(&types, ",1%.0s%.0s");
    rlhf__buf_printf(&says,
                     "general.architecture 8 llama\n"
                     "general.type 8 model\n"
                     "general.name 8 tiny\n"
                     "general.file_type 4 32\n"
                     "general.quantization_version 4 2\n"
                     "llama.vocab_size 4 260\n"
                     "llama.context_length 4 16\n"
                     "llama.embedding_length 4 4\n"
                     "llama.block_count 4 1\n"
                     "llama.feed_forward_length 4 3\n"
                     "llama.attention.head_count 4 2\n"
                     "llama.attention.layer_norm_rms_epsilon 6 0.5\n"
                     "llama.attention.head_count_kv 4 1\n"
                     "llama.attention.key_length 4 4\n"
                     "llama.attention.value_length 4 4\n"
                     "llama.rope.dimension_count 4 4\n"
                     "llama.rope.freq_base 6 9\n"
                     "tokenizer.ggml.model 8 gpt2\n"
                     "tokenizer.ggml.pre 8 gpt-2\n"
                     "tokenizer.ggml.bos_token_id 4 1\n"
                     "tokenizer.ggml.add_bos_token 7 false\n"
                     "tokenizer.ggml.add_eos_token 7 false\n"
                     "tokenizer.ggml.tokens 9 a,<s>,b,ab,<tool>%s,[PAD259]\n"
                     "tokenizer.ggml.token_type 9 1,3,1,1,4%s,5\n"
                     "tokenizer.ggml.merges 9 a b\n"
                     "token_embd.weight 4 260 type 30 at 0\n"
                     "blk.0.attn_norm.weight 4 type 0 at 2080\n"
                     "blk.0.attn_q.weight 4 8 type 30 at 2112\n"
                     "blk.0.attn_k.weight 4 4 type 30 at 2176\n"
                     "blk.0.attn_k.bias 4 type 0 at 2208\n"
                     "blk.0.attn_v.weight 4 4 type 30 at 2240\n"
                     "blk.0.attn_output.weight 8 4 type 30 at 2272\n"
                     "blk.0.ffn_norm.weight 4 type 0 at 2336\n"
                     "blk.0.ffn_gate.weight 4 3 type 30 at 2368\n"
                     "blk.0.ffn_up.weight 4 3 type 30 at 2400\n"
                     "blk.0.ffn_down.weight 3 4 type 30 at 2432\n"
                     "output_norm.weight 4 type 0 at 2464\n"
                     "rope_freqs.weight 2 type 0 at 2496\n",
                     rlhf__buf_text(&tokens), rlhf__buf_text(&types));
    assert_string_equal(head(&r, bytes, len), rlhf__buf_text(&says));
    rlhf__buf_free(&tokens);
    rlhf__buf_free(&types);
    rlhf__buf_free(&says);
    const uint8_t *data = r.p;
    assert_int_equal(r.end - data, 2528); // padded behind the last one too
    // Rows of a head of 4: 0, 2, 1, 3.
    const int order[4] = {0, 2, 1, 3};
    for (int head_of = 0; head_of < 2; head_of++)
        for (int row = 0; row < 4; row++)
            for (int c = 0; c < 4; c++) {
                const float want = m.data[2][(head_of * 4 + order[row]) * 4 + c];
                uint16_t got;
                memcpy(&got, data + 2112 + ((head_of * 4 + row) * 4 + c) * 2, sizeof got);
                assert_int_equal(got, rlhf__f32_to_bf16(want));
            }
    for (int row = 0; row < 4; row++) { // and of the bias
        float got;
        memcpy(&got, data + 2208 + row * 4, sizeof got);
        assert_true(got == m.data[4][order[row]]);
    }
    // Frequencies 1 and 1/3: a turn of 6.3, short of 32 / 4, and one of 18.8, between that and 32.
    float divisor[2];
    memcpy(divisor, data + 2496, sizeof divisor);
    assert_true(divisor[0] == 1);
    assert_float_equal(divisor[1], 3.044306, 1e-5);
    rlhf__buf_free(&r.out);
    end(&m);
}

// Old fields and new ones in one config: which goes first is as where the model is loaded.
static void rotary(void **state) {
#define PARAMETERS                                                                                 \
    ", \"rope_parameters\": {\"rope_type\": \"linear\", \"factor\": 2.0, "                         \
    "\"rope_theta\": 9.0}"
    static const struct {
        const char *fields, *says;
    } cases[] = {
        {PARAMETERS ", \"rope_theta\": 5.0",
         "freq_base 6 9\nllama.rope.scaling.type 8 linear\nllama.rope.scaling.factor 6 2\n"},
        {PARAMETERS
         ", \"rope_theta\": 5.0, \"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}",
         "freq_base 6 5\nllama.rope.scaling.type 8 linear\nllama.rope.scaling.factor 6 4\n"},
        {PARAMETERS ", \"rope_scaling\": {\"rope_theta\": 7}", "freq_base 6 7\ntokenizer"},
        {PARAMETERS ", \"rope_scaling\": {\"beta_fast\": 7}",
         "freq_base 6 9\nllama.rope.scaling.type 8 linear\nllama.rope.scaling.factor 6 2\n"},
        {", \"original_max_position_embeddings\": 8, \"rope_scaling\": {\"type\": \"yarn\", "
         "\"original_max_position_embeddings\": 4, \"factor\": 3}",
         "scaling.factor 6 3\nllama.rope.scaling.original_context_length 4 8\n"
         "llama.rope.scaling.yarn_beta_fast 6 32\nllama.rope.scaling.yarn_beta_slow 6 1\n"},
        {", \"rope_scaling\": {\"type\": \"yarn\", \"original_max_position_embeddings\": 4, "
         "\"beta_fast\": 30, \"beta_slow\": 0}",
         "scaling.factor 6 4\nllama.rope.scaling.original_context_length 4 4\n"
         "llama.rope.scaling.yarn_beta_fast 6 30\nllama.rope.scaling.yarn_beta_slow 6 1\n"},
        {", \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 2.0}",
         "scaling.factor 6 2\nllama.rope.scaling.original_context_length 4 16\n"},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct model m;
        struct reader r;
        size_t len;
        struct rlhf__buf config = RLHF__BUF_INIT;
        rlhf__buf_printf(&config, "{" LLAMA "%s}", cases[i].fields);
        begin(&m, *state, rlhf__buf_text(&config), GPT2_FORM);
        add_llama(&m);
        const uint8_t *bytes = written(&m, &len);
        const char *got = head(&r, bytes, len);
        if (!strstr(got, cases[i].says)) fail_msg("%s: %s", cases[i].fields, got);
        rlhf__buf_free(&r.out);
        rlhf__buf_free(&config);
        end(&m);
    }
}

// Llama 3's bands with the context of the top level, which goes first, and of the model, which
// stands in.
static void llama3_context(void **state) {
    static const struct {
        const char *fields;
        double divisor; // of the second frequency: waves of 18.85
    } cases[] = {
        {", \"original_max_position_embeddings\": 32, ", 3.044306},
        {", \"original_max_position_embeddings\": 0, ", 8},
        {", ", 8},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct model m;
        struct reader r;
        size_t len;
        struct rlhf__buf config = RLHF__BUF_INIT;
        rlhf__buf_printf(&config,
                         "{" LLAMA "%s\"rope_parameters\": {\"rope_type\": \"llama3\", "
                         "\"rope_theta\": 9.0, \"factor\": 8.0, \"low_freq_factor\": 1.0, "
                         "\"high_freq_factor\": 4.0%s}}",
                         cases[i].fields, i ? "" : ", \"original_max_position_embeddings\": 4096");
        begin(&m, *state, rlhf__buf_text(&config), GPT2_FORM);
        add_llama(&m);
        const uint8_t *bytes = written(&m, &len);
        head(&r, bytes, len);
        float divisor[2];
        memcpy(divisor, r.end - 32, sizeof divisor);
        assert_float_equal(divisor[1], cases[i].divisor, 1e-5);
        rlhf__buf_free(&r.out);
        rlhf__buf_free(&config);
        end(&m);
    }
}

static void gpt2(void **state) {
    struct model m;
    struct reader r;
    size_t len;
    begin(
        &m, *state,
        "{\"model_type\": \"gpt2\", \"architectures\": [\"GPT2LMHeadModel\"], \"vocab_size\": 259, "
        "\"n_embd\": 2, \"n_layer\": 1, \"n_head\": 1, \"n_positions\": 3, \"n_inner\": null, "
        "\"layer_norm_epsilon\": 0.25, \"eos_token_id\": [1, 4]}",
        GPT2_FORM);
    static const struct {
        const char *name;
        int64_t rows, columns;
    } t[] = {{"transformer.wte.weight", 259, 2}, {"transformer.wpe.weight", 3, 2},
             {"h.0.ln_1.weight", 2, 0},          {"h.0.ln_1.bias", 2, 0},
             {"h.0.attn.c_attn.weight", 2, 6},   {"h.0.attn.c_attn.bias", 6, 0},
             {"h.0.attn.c_proj.weight", 2, 2},   {"h.0.attn.c_proj.bias", 2, 0},
             {"h.0.ln_2.weight", 2, 0},          {"h.0.ln_2.bias", 2, 0},
             {"h.0.mlp.c_fc.weight", 2, 8},      {"h.0.mlp.c_fc.bias", 8, 0},
             {"h.0.mlp.c_proj.weight", 8, 2},    {"h.0.mlp.c_proj.bias", 2, 0},
             {"transformer.ln_f.weight", 2, 0},  {"transformer.ln_f.bias", 2, 0},
             {"lm_head.weight", 259, 2}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        add(&m, t[i].name, t[i].rows, t[i].columns);
    const uint8_t *bytes = written(&m, &len);
    const char *got = head(&r, bytes, len);
    assert_non_null(strstr(got, "gpt2.feed_forward_length 4 8\n"));
    assert_non_null(strstr(got, "gpt2.attention.layer_norm_epsilon 6 0.25\n"));
    assert_non_null(strstr(got, "tokenizer.ggml.eos_token_id 4 1\n"));
    assert_non_null(strstr(got, "\nblk.0.attn_qkv.weight 2 6 type 0 at 2176\n"));
    assert_non_null(strstr(got, "\nblk.0.ffn_down.weight 8 2 type 0 at "));
    assert_non_null(strstr(got, "\noutput.weight 2 259 type 0 at "));
    for (int row = 0; row < 6; row++) // [in, out] is turned
        for (int c = 0; c < 2; c++) {
            float x;
            memcpy(&x, r.p + 2176 + (row * 2 + c) * 4, sizeof x);
            assert_true(x == m.data[4][c * 6 + row]);
        }
    rlhf__buf_free(&r.out);
    end(&m);
}

#define SP "\xE2\x96\x81"
#define SPM(merges)                                                                                \
    "{\"model\": {\"type\": \"BPE\", \"byte_fallback\": true, \"vocab\": {\"<unk>\": 0, "          \
    "\"<0x0A>\": 1, \"" SP "\": 2, \"a\": 3, \"aa\": 4, \"" SP "aa\": 5}, \"merges\": [" merges    \
    "]}, \"added_tokens\": [{\"id\": 0, \"content\": \"<unk>\", \"special\": true}], "             \
    "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Prepend\", "          \
    "\"prepend\": \"" SP "\"}, {\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, "         \
    "\"content\": \"" SP "\"}]}, \"pre_tokenizer\": null, \"post_processor\": {\"type\": "         \
    "\"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"<unk>\"}}, "               \
    "{\"Sequence\": {\"id\": \"A\"}}], \"special_tokens\": {\"<unk>\": {\"ids\": [0]}}}}"

static void sentence_pieces(void **state) {
    struct model m;
    struct reader r;
    size_t len;
    scratch_text(*state, "tokenizer_config.json",
                 "{\"unk_token\": \"<unk>\", \"bos_token\": {\"content\": \"<unk>\"}, "
                 "\"chat_template\": \"{{ x }}\"}");
    begin(&m, *state, "{" LLAMA_OF("6") "}", SPM("\"a a\", \"" SP " aa\""));
    add_llama(&m);
    const uint8_t *bytes = written(&m, &len);
    const char *got = head(&r, bytes, len);
    assert_non_null(strstr(got, "tokenizer.ggml.model 8 llama\n"
                                "tokenizer.ggml.pre 8 default\n"
                                "tokenizer.ggml.bos_token_id 4 0\n"
                                "tokenizer.ggml.unknown_token_id 4 0\n"
                                "tokenizer.ggml.add_bos_token 7 true\n"
                                "tokenizer.ggml.add_eos_token 7 false\n"
                                "tokenizer.ggml.add_space_prefix 7 true\n"
                                "tokenizer.ggml.tokens 9 <unk>,<0x0A>," SP ",a,aa," SP "aa\n"
                                "tokenizer.ggml.token_type 9 2,6,1,1,1,1\n"
                                "tokenizer.ggml.scores 9 0,0,0,0,-1,-2\n"
                                "tokenizer.chat_template 8 {{ x }}\n"));
    rlhf__buf_free(&r.out);
    end(&m);
}

// The tokenizer's own order of special_tokens_map.json and tokenizer_config.json.
static void roles(void **state) {
    static const char *const cases[][2] = {
        {"{\"eos_token\": \"a\"}", "tokenizer.ggml.eos_token_id 4 2\n"},
        {"{\"eos_token\": \"a\", \"added_tokens_decoder\": {}}",
         "tokenizer.ggml.eos_token_id 4 0\n"},
        {"{}", "tokenizer.ggml.eos_token_id 4 2\n"},
    };
    scratch_text(*state, "special_tokens_map.json", "{\"eos_token\": {\"content\": \"b\"}}");
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct model m;
        struct reader r;
        size_t len;
        scratch_text(*state, "tokenizer_config.json", cases[i][0]);
        begin(&m, *state, "{" LLAMA "}", GPT2_FORM);
        add_llama(&m);
        const uint8_t *bytes = written(&m, &len);
        const char *got = head(&r, bytes, len);
        if (!strstr(got, cases[i][1])) fail_msg("case %zu: no '%s' in %s", i, cases[i][1], got);
        rlhf__buf_free(&r.out);
        end(&m);
    }
}

// ---- refusals ----

static void configs(void **state) {
    static const struct {
        const char *config, *says;
    } cases[] = {
        {"{\"model_type\": \"distilbert\"}", "this is distilbert"},
        {"{}", "this is none"},
        {"{\"model_type\": \"llama\", \"architectures\": [\"LlamaForSequenceClassification\"]}",
         "holds a language model; this is LlamaForSequenceClassification"},
        {"{" LLAMA ", \"hidden_act\": \"gelu\"}", "hidden_act is \"gelu\", which a GGUF file"},
        {"{\"model_type\": \"gpt2\", \"activation_function\": \"gelu\"}",
         "activation_function is \"gelu\""},
        {"{\"model_type\": \"mistral\", \"sliding_window\": 4096}", "sliding_window is 4096"},
        {"{\"model_type\": \"qwen2\", \"use_sliding_window\": true}", "use_sliding_window is true"},
        {"{\"model_type\": \"llama\"}", "vocab_size is missing, expected a whole number"},
        {"{\"model_type\": \"gpt2\", \"vocab_size\": 0}", "vocab_size is out of range"},
        {"{" LLAMA ", \"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2.0}}",
         "rope_type of the rotary positions is \"dynamic\""},
        {"{" LLAMA ", \"rope_scaling\": {\"rope_type\": \"linear\"}}", "factor of the rotary"},
        {"{" LLAMA ", \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4, "
         "\"original_max_position_embeddings\": 8, \"attention_factor\": 2.0}}",
         "attention_factor of the rotary positions is 2.0"},
        {"{" LLAMA ", \"partial_rotary_factor\": 0.5}", "partial_rotary_factor is 0.5"},
        {"{" LLAMA ", \"rope_theta\": -1}", "rope_theta of the rotary positions is -1"},
        {"{" LLAMA ", \"rope_theta\": \"9\"}", "rope_theta of the rotary positions is \"9\""},
        {"{" LLAMA ", \"original_max_position_embeddings\": true}",
         "original_max_position_embeddings of the rotary positions is true"},
        {"{" LLAMA ", \"rope_parameters\": {\"rope_type\": 1}}",
         "rope_type of the rotary positions is 1"},
        {"{" LLAMA ", \"rope_parameters\": {\"beta_fast\": \"1\"}}", "beta_fast of the rotary"},
        // The object that goes first is the one that is refused.
        {"{" LLAMA ", \"rope_scaling\": {\"type\": \"longrope\"}, "
         "\"rope_parameters\": {\"rope_type\": \"default\"}}",
         "rope_type of the rotary positions is \"longrope\""},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct model m;
        begin(&m, *state, cases[i].config, GPT2_FORM);
        add_llama(&m);
        refused(&m, cases[i].says);
        end(&m);
    }
}

static void tokenizers(void **state) {
#define WITH(model, rest) "{\"model\": {\"type\": " model "}, " rest "}"
    static const char *const cases[][2] = {
        {WITH("\"Unigram\"", "\"x\": 0"), "llama.cpp has no form for the model Unigram"},
        {WITH("\"WordPiece\"", "\"x\": 0"), "the model WordPiece"},
        {WITH("\"BPE\", \"end_of_word_suffix\": \"</w>\"", "\"x\": 0"), "end_of_word_suffix </w>"},
        {BPE "\"pre_tokenizer\": {\"type\": \"Whitespace\"}}", "the pre_tokenizer {\"type\":"},
        {BPE "\"normalizer\": {\"type\": \"NFKC\"}, \"pre_tokenizer\": " BYTE_LEVEL "}",
         "the normalizer NFKC"},
        {WITH("\"BPE\", \"ignore_merges\": true, \"vocab\": {}, \"merges\": []",
              "\"pre_tokenizer\": " BYTE_LEVEL),
         "with ignore_merges"},
        {SPM("\"a a\""), "'" SP "' and 'aa' are pieces and so is their sum, but they are no merge"},
        {SPM("\"a a\", \"" SP " aa\", \"a a\""), "the merges of 'aa' do not stand together"},
        {SPM("\"aa\", \"" SP " aa\""), "merge 0 is not two tokens"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 260}, \"merges\": []}, "
         "\"pre_tokenizer\": " BYTE_LEVEL "}",
         "the token 'a' has the id 260, and the model has 260 rows"},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct model m;
        begin(&m, *state, "{" LLAMA "}", cases[i][0]);
        add_llama(&m);
        refused(&m, cases[i][1]);
        end(&m);
    }
}

static void tensors(void **state) {
    struct model m;
    struct rlhf__error err = {0};
    begin(&m, *state, "{" LLAMA "}", GPT2_FORM);
    add_llama(&m);
    m.m.n--;
    refused(&m, "the weights lack what is output_norm.weight in a GGUF file");
    m.m.n++;
    add(&m, "model.layers.0.mlp.experts.weight", 2, 2);
    refused(&m, "tensor model.layers.0.mlp.experts.weight has no place in a GGUF file");
    m.tensor[m.m.n - 1].name = "model.layers.1.mlp.up_proj.weight";
    refused(&m, "is of layer 1; the model has 1");
    m.tensor[m.m.n - 1].name = "model.layers.00.mlp.up_proj.weight";
    refused(&m, "tensor model.layers.00.mlp.up_proj.weight has no place");
    // Two that would have one name; either comes first in the message.
    m.tensor[m.m.n - 1].name = "norm.weight";
    refused(&m, "norm.weight would both be output_norm.weight in a GGUF file");
    m.tensor[m.m.n - 1].name = "lm_head.weight";
    m.tensor[m.m.n - 1].dtype = RLHF__TENSOR_I32;
    refused(&m, "tensor lm_head.weight is no vector or matrix of F32, F16 or BF16");
    m.m.n--;
    m.tensor[3].shape[0] = 2;
    m.tensor[3].count = 8;
    refused(&m, "has 2 rows, the config says 1 heads of width 4");
    m.tensor[3].shape[0] = 4;
    m.tensor[3].count = 16;
    m.data[3][7] = 70000;
    m.m.dtype = RLHF__TENSOR_F16;
    const char *path = scratch_path(*state, "x.gguf");
    check_error(rlhf__gguf_write(&m.m, NULL, path, &err), RLHF_E_INVALID, &err,
                "element 7 of tensor model.layers.0.self_attn.k_proj.weight is 70000, which is "
                "more than f16 holds");
    assert_false(rlhf__is_file(path));
    end(&m);
}

// What stands around a text: one BOS in front and one EOS behind can be said, no more.
static void frames(void **state) {
#define AROUND(post) BPE "\"pre_tokenizer\": " BYTE_LEVEL ", \"post_processor\": {" post "}}"
#define TEMPLATE(list)                                                                             \
    AROUND("\"type\": \"TemplateProcessing\", \"single\": [" list "], \"special_tokens\": "        \
           "{\"<s>\": {\"ids\": [1]}, \"<tool>\": {\"ids\": [4]}}")
#define TEXT    "{\"Sequence\": {\"id\": \"A\"}}"
#define NAME(s) "{\"SpecialToken\": {\"id\": \"" s "\"}}"
#define PAIR(type, cls, sep)                                                                       \
    AROUND("\"type\": \"" type "\", \"cls\": [\"x\", " cls "], \"sep\": [\"y\", " sep "]")
    static const char *const cases[][3] = {
        {TEMPLATE(TEXT), "bos_token 7 false\n", "eos_token 7 false\n"},
        {TEMPLATE(NAME("<s>") "," TEXT), "bos_token 7 true\n", "eos_token 7 false\n"},
        {TEMPLATE(NAME("<s>") "," TEXT "," NAME("<tool>")), "bos_token 7 true\n",
         "eos_token 7 true\n"},
        {PAIR("RobertaProcessing", "1", "4"), "bos_token 7 true\n", "eos_token 7 true\n"},
        {PAIR("BertProcessing", "1", "4"), "bos_token 7 true\n", "eos_token 7 true\n"},
        {AROUND("\"type\": \"ByteLevel\""), "bos_token 7 false\n", "eos_token 7 false\n"},
        {PAIR("BertProcessing", "4", "1"), NULL,
         "the tokenizer puts '<tool>' in front of a text; a GGUF file can say only its BOS token"},
        {TEMPLATE(NAME("<s>") "," TEXT "," NAME("<s>")), NULL,
         "the tokenizer puts '<s>' behind a text; a GGUF file can say only its EOS token"},
        {TEMPLATE(NAME("<s>") "," NAME("<tool>") "," TEXT), NULL,
         "puts '<tool>' in front of a text"},
        {TEMPLATE(NAME("<s>") "," NAME("<s>") "," TEXT), NULL,
         "puts 2 BOS tokens in front of a text; a GGUF file can say one"},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct model m;
        struct reader r;
        size_t len;
        begin(&m, *state, "{" LLAMA ", \"eos_token_id\": 4}", cases[i][0]);
        add_llama(&m);
        if (cases[i][1]) {
            const uint8_t *bytes = written(&m, &len);
            const char *got = head(&r, bytes, len);
            for (size_t k = 1; k < 3; k++)
                if (!strstr(got, cases[i][k])) fail_msg("%s: %s", cases[i][0], got);
            rlhf__buf_free(&r.out);
        } else {
            refused(&m, cases[i][2]);
        }
        end(&m);
    }
}

// A tokenizer that models refuse is refused, and none of its files is passed over.
#define CLASSIC "{\"a\": 0, \"b\": 2@}"
static void tokenizer_files(void **state) {
    static const struct {
        const char *file[3][2];
        const char *says; // NULL = it is written
    } cases[] = {
        {{{"vocab.json", CLASSIC}, {"merges.txt", ""}}, NULL},
        {{{"vocab.json", CLASSIC}, {"merges.txt", ""}, {"tokenizer.json", "{\"model\": "}},
         "tokenizer.json:1:"},
        {{{"vocab.json", CLASSIC},
          {"merges.txt", ""},
          {"tokenizer_config.json", "{\"bos_token\": \"a\""}},
         "tokenizer_config.json:1:"},
        {{{"vocab.json", CLASSIC},
          {"merges.txt", ""},
          {"tokenizer_config.json", "{\"tokenizer_class\": \"Qwen2Tokenizer\"}"}},
         "tokenizer_class 'Qwen2Tokenizer' is not supported without a tokenizer.json"},
        {{{"vocab.json", CLASSIC}, {"merges.txt", ""}, {"added_tokens.json", "{"}},
         "added_tokens.json:1:"},
        {{{"vocab.json", CLASSIC}, {"merges.txt", ""}, {"special_tokens_map.json", "{"}},
         "special_tokens_map.json:1:"},
        {{{"vocab.json", CLASSIC}, {"merges.txt", ""}, {"chat_template.json", "{"}},
         "chat_template.json:1:"},
        {{{"vocab.json", "{\"a\": "}, {"merges.txt", ""}}, "vocab.json:1:"},
        {{{"vocab.json", "[1]"}, {"merges.txt", ""}}, "vocab.json: expected an object"},
        {{{"merges.txt", ""}}, "no tokenizer that a GGUF file can hold"},
    };
    static const char *const all[] = {"vocab.json",        "merges.txt",
                                      "tokenizer.json",    "tokenizer_config.json",
                                      "added_tokens.json", "special_tokens_map.json",
                                      "chat_template.json"};
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct model m;
        size_t len;
        begin(&m, *state, "{" LLAMA "}", "");
        for (size_t k = 0; k < CHECK_COUNT(all); k++)
            remove(scratch_path(*state, all[k]));
        for (size_t k = 0; k < 3 && cases[i].file[k][0]; k++)
            tokenizer_text(*state, cases[i].file[k][0], cases[i].file[k][1]);
        add_llama(&m);
        if (cases[i].says)
            refused_as(&m,
                       strstr(cases[i].says, "not supported") ? RLHF_E_UNSUPPORTED : RLHF_E_INVALID,
                       cases[i].says);
        else
            written(&m, &len);
        end(&m);
    }
}

static struct rlhf__tensor *named(struct model *m, const char *name) {
    for (size_t i = 0; i < m->m.n; i++)
        if (strcmp(m->tensor[i].name, name) == 0) return &m->tensor[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

// What llama.cpp's loader of each architecture makes: no more, and no less.
static void architectures(void **state) {
#define AS(type)                                                                                   \
    "{\"model_type\": \"" type "\", \"vocab_size\": 260, \"hidden_size\": 4, "                     \
    "\"intermediate_size\": 3, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "             \
    "\"num_key_value_heads\": 1, \"head_dim\": 4, \"max_position_embeddings\": 16, "               \
    "\"rms_norm_eps\": 0.5}"
#define IN "model.layers.0."
    static const char *const more[][4] = {
        {AS("llama"), "input_layernorm.bias", "self_attn.q_norm.weight", "self_attn.k_norm.weight"},
        {AS("qwen2"), "self_attn.o_proj.bias", "self_attn.q_norm.weight", "mlp.down_proj.bias"},
        {AS("qwen3"), "self_attn.q_proj.bias", "self_attn.o_proj.bias", "mlp.up_proj.bias"},
    };
    static const char *const own[][5] = {
        {NULL},
        {"self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias", NULL},
        {"self_attn.q_norm.weight", "self_attn.k_norm.weight", NULL},
    };
    static const char *const lacks[][3] = {{NULL},
                                           {"attn_q.bias", "attn_k.bias", "attn_v.bias"},
                                           {"attn_q_norm.weight", "attn_k_norm.weight", NULL}};
    for (size_t a = 0; a < CHECK_COUNT(more); a++) {
        struct model m;
        char name[8][96], says[96];
        size_t n = 0;
        begin(&m, *state, more[a][0], GPT2_FORM);
        add_llama(&m);
        m.tensor[4] = m.tensor[--m.m.n]; // the bias of keys goes
        for (; own[a][n]; n++) {
            snprintf(name[n], sizeof name[n], IN "%s", own[a][n]);
            add(&m, name[n], strstr(name[n], "q_proj") ? 8 : 4, 0);
        }
        written(&m, &(size_t){0});
        for (size_t i = 1; i < 4; i++) {
            snprintf(name[n], sizeof name[n], IN "%s", more[a][i]);
            snprintf(says, sizeof says, "tensor " IN "%s has no place in a GGUF file", more[a][i]);
            add(&m, name[n], strstr(name[n], "q_proj") ? 8 : 4, 0);
            refused(&m, says);
            m.m.n--;
        }
        for (size_t i = 0; own[a][i]; i++) {
            struct rlhf__tensor *t = named(&m, name[i]), kept = *t;
            *t = m.tensor[--m.m.n];
            snprintf(says, sizeof says, "the weights lack what is blk.0.%s in a GGUF file",
                     lacks[a][i]);
            refused(&m, says);
            m.tensor[m.m.n++] = *t;
            *t = kept;
        }
        end(&m);
    }
    struct model m;
    begin(&m, *state, AS("llama"), GPT2_FORM);
    add_llama(&m);
    add(&m, "lm_head.bias", 260, 0);
    refused(&m,
            "tensor lm_head.bias has no place in a GGUF file of llama.cpp's architecture llama");
    end(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(llama, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(rotary, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(llama3_context, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(gpt2, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(sentence_pieces, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(roles, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(configs, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(tokenizers, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(tensors, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(architectures, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(frames, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(tokenizer_files, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("gguf", tests, NULL, NULL);
}
