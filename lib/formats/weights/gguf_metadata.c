// gguf_metadata.c: see gguf_metadata.h.
#include "weights/gguf_metadata.h"

#include "base/buf.h"
#include "weights/gguf_family.h"
#include "weights/gguf_rotary.h"

#include <stdio.h>
#include <string.h>

static rlhf_status missing(const struct rlhf__gguf_reader *r, const char *name,
                           struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s: the key %s.%s is missing, which a model of this architecture needs",
                      rlhf__gguf_path(r->file), r->arch, name);
}

// ---- the architecture ----

static int is_text(const char *text, size_t n, const char *other) {
    return n == strlen(other) && memcmp(text, other, n) == 0;
}

// Refuses files that llama.cpp loads in addition to a model.
static rlhf_status check_kind(const struct rlhf__gguf_reader *r, struct rlhf__error *err) {
    const struct rlhf__gguf_value *v = rlhf__gguf_find(r->file, "general.type");
    const char *text;
    size_t n;
    if (!v) return RLHF_OK;
    RLHF_TRY(rlhf__gguf_value_str(v, &text, &n, err));
    if (is_text(text, n, "adapter"))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s: the key general.type is adapter, expected model; an adapter is read "
                          "only as PEFT writes it, a directory with adapter_config.json",
                          rlhf__gguf_path(r->file));
    if (is_text(text, n, "mmproj"))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s: the key general.type is mmproj, expected model; this file only "
                          "reads images or sound, so give the file of its language model",
                          rlhf__gguf_path(r->file));
    return RLHF_OK;
}

static rlhf_status unknown_arch(const struct rlhf__gguf_reader *r, const char *arch,
                                struct rlhf__error *err) {
    struct rlhf__buf known = RLHF__BUF_INIT;
    for (int32_t i = 0; i < RLHF__GGUF_N_FAMILIES; i++)
        rlhf__buf_printf(&known, "%s%s", i ? ", " : "", rlhf__gguf_arch(i));
    rlhf__fail(err, RLHF_E_UNSUPPORTED, "%s: the architecture %.40s is not read; supported: %s",
               rlhf__gguf_path(r->file), arch, rlhf__buf_text(&known));
    rlhf__buf_finish(&known);
    return RLHF_E_UNSUPPORTED;
}

static rlhf_status read_arch(struct rlhf__gguf_reader *r, struct rlhf__error *err) {
    const struct rlhf__gguf_value *v = rlhf__gguf_find(r->file, "general.architecture");
    const char *text = "", *class_name;
    char arch[64];
    size_t n = 0;
    RLHF_TRY(check_kind(r, err));
    if (!v)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: the key general.architecture is missing",
                          rlhf__gguf_path(r->file));
    RLHF_TRY(rlhf__gguf_value_str(v, &text, &n, err));
    snprintf(arch, sizeof arch, "%.*s", n < sizeof arch ? (int)n : (int)sizeof arch - 1, text);
    r->shape.family = strlen(arch) == n ? rlhf__gguf_family_of(arch) : -1;
    for (char *c = arch; *c; c++)
        if (*c < 0x20 || *c > 0x7E) *c = '?';
    if (r->shape.family < 0) return unknown_arch(r, arch, err);
    r->arch = rlhf__gguf_arch(r->shape.family);
    v = rlhf__gguf_key_find(r, "expert_count");
    int64_t experts = 0;
    if (v) RLHF_TRY(rlhf__gguf_value_int(v, 0, RLHF__GGUF_SIZE, &experts, err));
    if (experts > 0)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s: the key %s.expert_count is %lld; models of experts are not read",
                          rlhf__gguf_path(r->file), r->arch, (long long)experts);
    const char *type = rlhf__gguf_model_type(r->shape.family, &class_name);
    RLHF_TRY(rlhf__gguf_field_put(r, "architectures", json_pack("[s]", class_name), err));
    return rlhf__gguf_field_put(r, "model_type", json_string(type), err);
}

// ---- sizes ----

static rlhf_status size_of(const struct rlhf__gguf_reader *r, const char *name, int64_t fallback,
                           int64_t max, int32_t *out, struct rlhf__error *err) {
    const struct rlhf__gguf_value *v = rlhf__gguf_key_find(r, name);
    int64_t n = fallback;
    if (!v && fallback < 1) return missing(r, name, err);
    if (v) RLHF_TRY(rlhf__gguf_value_int(v, 1, max, &n, err));
    *out = (int32_t)n;
    return RLHF_OK;
}

// LFM2 has a number for each layer, which is 0 for layers with a state.
static rlhf_status read_key_heads(struct rlhf__gguf_reader *r, struct rlhf__error *err) {
    struct rlhf__gguf_shape *s = &r->shape;
    const struct rlhf__gguf_value *v = rlhf__gguf_key_find(r, "attention.head_count_kv");
    size_t n;
    if (!v || rlhf__gguf_value_type(v) != RLHF__GGUF_ARRAY)
        return size_of(r, "attention.head_count_kv", s->heads, RLHF__GGUF_SIZE, &s->kv_heads, err);
    RLHF_TRY(rlhf__gguf_value_count(v, RLHF__GGUF_I64, &n, err));
    int good = n >= (size_t)s->layers;
    for (int32_t i = 0; good && i < s->layers; i++) {
        const int64_t heads = rlhf__gguf_item_int(v, (size_t)i);
        good = heads >= 0 && heads <= RLHF__GGUF_SIZE &&
               (heads == 0 || s->kv_heads == 0 || heads == s->kv_heads);
        if (heads > 0) s->kv_heads = (int32_t)heads;
        if (heads == 0 && s->family == RLHF__GGUF_LFM2) rlhf__gguf_set_state(&s->mix, i);
    }
    if (s->kv_heads == 0) s->kv_heads = s->heads; // all layers lack attention
    if (good) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "%s: the key %s.attention.head_count_kv is not one number, 0 or the same in "
                      "each of the %d layers",
                      rlhf__gguf_path(r->file), r->arch, (int)s->layers);
}

// The layers of Qwen3.5 with attention: every fourth, or what a key says.
static rlhf_status read_states(struct rlhf__gguf_reader *r, struct rlhf__error *err) {
    struct rlhf__gguf_shape *s = &r->shape;
    const struct rlhf__gguf_value *v = rlhf__gguf_key_find(r, "attention.recurrent_layers");
    int32_t every = 4;
    size_t n = 0;
    if (v) RLHF_TRY(rlhf__gguf_value_count(v, RLHF__GGUF_BOOL, &n, err));
    if (v && n < (size_t)s->layers)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "%s: the key %s.attention.recurrent_layers has %zu elements for %d layers",
            rlhf__gguf_path(r->file), r->arch, n, (int)s->layers);
    RLHF_TRY(size_of(r, "full_attention_interval", every, RLHF__GGUF_SIZE, &every, err));
    for (int32_t i = 0; i < s->layers; i++)
        if (v ? rlhf__gguf_item_int(v, (size_t)i) != 0 : (i + 1) % every != 0)
            rlhf__gguf_set_state(&s->mix, i);
    return RLHF_OK;
}

static rlhf_status read_delta(struct rlhf__gguf_reader *r, struct rlhf__error *err) {
    struct rlhf__gguf_mix *m = &r->shape.mix;
    int32_t inner = 0;
    RLHF_TRY(size_of(r, "ssm.conv_kernel", 0, RLHF__GGUF_SIZE, &m->taps, err));
    RLHF_TRY(size_of(r, "ssm.state_size", 0, RLHF__GGUF_SIZE, &m->key_dim, err));
    RLHF_TRY(size_of(r, "ssm.group_count", 0, RLHF__GGUF_SIZE, &m->key_heads, err));
    RLHF_TRY(size_of(r, "ssm.time_step_rank", 0, RLHF__GGUF_SIZE, &m->value_heads, err));
    RLHF_TRY(size_of(r, "ssm.inner_size", 0, RLHF__GGUF_SIZE, &inner, err));
    m->value_dim = inner / m->value_heads;
    if (inner % m->value_heads || m->value_heads % m->key_heads)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "%s: %d heads of values (%s.ssm.time_step_rank) do not divide %d elements "
            "(ssm.inner_size), or not into %d groups (ssm.group_count)",
            rlhf__gguf_path(r->file), (int)m->value_heads, r->arch, (int)inner, (int)m->key_heads);
    return read_states(r, err);
}

// Additional layers at the end that predict further tokens.
static rlhf_status read_more(struct rlhf__gguf_reader *r, struct rlhf__error *err) {
    struct rlhf__gguf_shape *s = &r->shape;
    const struct rlhf__gguf_value *v = rlhf__gguf_key_find(r, "nextn_predict_layers");
    int64_t more = 0;
    if (v) RLHF_TRY(rlhf__gguf_value_int(v, 0, s->layers - 1, &more, err));
    s->more = (int32_t)more;
    s->layers -= s->more;
    return RLHF_OK;
}

static rlhf_status read_shape(struct rlhf__gguf_reader *r, struct rlhf__error *err) {
    struct rlhf__gguf_shape *s = &r->shape;
    int32_t values = 0;
    RLHF_TRY(size_of(r, "embedding_length", 0, RLHF__GGUF_SIZE, &s->width, err));
    RLHF_TRY(size_of(r, "context_length", 0, RLHF__GGUF_SIZE, &s->context, err));
    RLHF_TRY(size_of(r, "feed_forward_length", 0, RLHF__GGUF_SIZE, &s->mlp, err));
    RLHF_TRY(size_of(r, "block_count", 0, RLHF__GGUF_LAYERS, &s->layers, err));
    RLHF_TRY(size_of(r, "attention.head_count", 0, RLHF__GGUF_SIZE, &s->heads, err));
    if (s->family == RLHF__GGUF_QWEN35) RLHF_TRY(read_more(r, err));
    RLHF_TRY(read_key_heads(r, err));
    if (s->family == RLHF__GGUF_QWEN35) RLHF_TRY(read_delta(r, err));
    if (s->family == RLHF__GGUF_LFM2)
        RLHF_TRY(size_of(r, "shortconv.l_cache", 0, RLHF__GGUF_SIZE, &s->mix.taps, err));
    const int32_t even = s->heads > 0 && s->width > s->heads ? s->width / s->heads : 1;
    RLHF_TRY(size_of(r, "attention.key_length", even, RLHF__GGUF_SIZE, &s->head_dim, err));
    RLHF_TRY(size_of(r, "attention.value_length", s->head_dim, RLHF__GGUF_SIZE, &values, err));
    if (values != s->head_dim)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s: heads of %d elements of keys and %d of values (%s.attention."
                          "key_length, value_length); they must be equal",
                          rlhf__gguf_path(r->file), (int)s->head_dim, (int)values, r->arch);
    return RLHF_OK;
}

// The rows of the embedding count, because files with added tokens may have another vocab_size.
static rlhf_status put_vocab(struct rlhf__gguf_reader *r, struct rlhf__error *err) {
    const struct rlhf__tensor *t = rlhf__gguf_tensor_find(r->file, "token_embd.weight");
    if (!t || t->ndim != 2)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: the tensor token_embd.weight is missing or not a matrix; is it the "
                          "file of a language model?",
                          rlhf__gguf_path(r->file));
    r->shape.vocab = t->shape[0];
    return rlhf__gguf_field_put(r, "vocab_size", json_integer(t->shape[0]), err);
}

// ---- fields of the table ----

static rlhf_status put_key(struct rlhf__gguf_reader *r, const struct rlhf__gguf_key *k,
                           struct rlhf__error *err) {
    const struct rlhf__gguf_value *v = rlhf__gguf_key_find(r, k->key);
    const struct {
        const char *field;
        int64_t value;
    } known[] = {{"num_key_value_heads", r->shape.kv_heads},
                 {"head_dim", r->shape.head_dim},
                 {"num_hidden_layers", r->shape.layers}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(k->field, known[i].field) == 0)
            return rlhf__gguf_field_put(r, k->field, json_integer(known[i].value), err);
    if (!v && k->missing == 0) return missing(r, k->key, err);
    if (k->is_float) {
        double x = k->missing;
        if (v) RLHF_TRY(rlhf__gguf_value_num(v, &x, err));
        return rlhf__gguf_field_put(r, k->field, json_real(x), err);
    }
    int64_t n = (int64_t)k->missing;
    if (v) RLHF_TRY(rlhf__gguf_value_int(v, 1, RLHF__GGUF_SIZE, &n, err));
    return rlhf__gguf_field_put(r, k->field, json_integer(n), err);
}

static rlhf_status put_keys(struct rlhf__gguf_reader *r, struct rlhf__error *err) {
    const struct rlhf__gguf_key *k;
    for (size_t i = 0; (k = rlhf__gguf_key(i)) != NULL; i++)
        if (k->families >> r->shape.family & 1 && strcmp(k->key, "vocab_size") != 0)
            RLHF_TRY(put_key(r, k, err));
    return put_vocab(r, err);
}

// ---- token ids ----

// Ids outside of the vocabulary are left out.
static rlhf_status put_ids(struct rlhf__gguf_reader *r, struct rlhf__error *err) {
    static const char *const ids[][2] = {{"bos_token_id", "tokenizer.ggml.bos_token_id"},
                                         {"eos_token_id", "tokenizer.ggml.eos_token_id"},
                                         {"pad_token_id", "tokenizer.ggml.padding_token_id"},
                                         {"unk_token_id", "tokenizer.ggml.unknown_token_id"}};
    const json_int_t n = json_integer_value(json_object_get(r->config, "vocab_size"));
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const struct rlhf__gguf_value *v = rlhf__gguf_find(r->file, ids[i][1]);
        int64_t id = -1;
        if (v) RLHF_TRY(rlhf__gguf_value_int(v, INT64_MIN, INT64_MAX, &id, err));
        if (id >= 0 && id < n) RLHF_TRY(rlhf__gguf_field_put(r, ids[i][0], json_integer(id), err));
    }
    return RLHF_OK;
}

// ---- all of it ----

static rlhf_status read_all(struct rlhf__gguf_reader *r, struct rlhf__error *err) {
    RLHF_TRY(read_arch(r, err));
    RLHF_TRY(read_shape(r, err));
    RLHF_TRY(put_keys(r, err));
    RLHF_TRY(rlhf__gguf_family_put(r, err));
    const int32_t f = r->shape.family;
    if (f != RLHF__GGUF_GPT2) {
        const struct rlhf__gguf_positions p = {r->file,
                                               r->arch,
                                               f,
                                               r->shape.head_dim,
                                               r->by_kind || f == RLHF__GGUF_GEMMA3,
                                               (double)r->shape.context};
        RLHF_TRY(rlhf__gguf_rotary(&p, r->config, err));
    }
    RLHF_TRY(put_ids(r, err));
    return rlhf__gguf_field_put(r, "tie_word_embeddings",
                                json_boolean(!rlhf__gguf_has_tensor(r, "output.weight")), err);
}

rlhf_status rlhf__gguf_config(const struct rlhf__gguf_file *file, struct rlhf__gguf_shape *shape,
                              json_t **config, struct rlhf__error *err) {
    struct rlhf__gguf_reader r = {.file = file, .arch = "", .config = json_object()};
    *config = NULL;
    const rlhf_status st =
        r.config ? read_all(&r, err)
                 : RLHF__NOMEM(err, "out of memory for the config of %s", rlhf__gguf_path(file));
    if (st != RLHF_OK) {
        json_decref(r.config);
        return st;
    }
    *config = r.config;
    if (shape) *shape = r.shape;
    return RLHF_OK;
}
