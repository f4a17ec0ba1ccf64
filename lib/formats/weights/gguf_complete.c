// gguf_complete.c: see gguf_complete.h.
#include "weights/gguf_complete.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- shapes ----

// The sizes that occur in shapes. KEYS is also the width of all heads' values.
enum {
    ONE,
    WIDTH,
    QUERIES,
    QUERIES_AND_GATES,
    KEYS,
    QUERIES_KEYS_VALUES,
    HEAD,
    MLP,
    GATE_AND_UP,
    VOCAB,
    CONTEXT,
    // of layers with a state
    THREE_WIDTHS,
    TAPS,
    STATE_ALL, // queries, keys and values of the delta rule
    STATE_VALUES,
    STATE_HEADS,
    STATE_HEAD
};

// The shapes of weights, by the last part of llama.cpp's name. Other weights are vectors of WIDTH.
// A bias has as many elements as its weight has rows.
static const struct {
    const char *stem;
    int32_t rows, columns;
} shapes[] = {
    {"token_embd", VOCAB, WIDTH},
    {"output", VOCAB, WIDTH},
    {"position_embd", CONTEXT, WIDTH},
    {"attn_q", QUERIES, WIDTH},
    {"attn_k", KEYS, WIDTH},
    {"attn_v", KEYS, WIDTH},
    {"attn_qkv", QUERIES_KEYS_VALUES, WIDTH},
    {"attn_output", WIDTH, QUERIES},
    {"attn_q_norm", HEAD, ONE},
    {"attn_k_norm", HEAD, ONE},
    {"ffn_gate", MLP, WIDTH},
    {"ffn_up", MLP, WIDTH},
    {"ffn_down", WIDTH, MLP},
    {"shortconv.in_proj", THREE_WIDTHS, WIDTH},
    {"shortconv.conv", WIDTH, TAPS},
    {"shortconv.out_proj", WIDTH, WIDTH},
    {"attn_gate", STATE_VALUES, WIDTH},
    {"ssm_beta", STATE_HEADS, WIDTH},
    {"ssm_alpha", STATE_HEADS, WIDTH},
    {"ssm_conv1d", STATE_ALL, TAPS},
    {"ssm_a", STATE_HEADS, ONE},
    {"ssm_dt", STATE_HEADS, ONE},
    {"ssm_norm", STATE_HEAD, ONE},
    {"ssm_out", WIDTH, STATE_VALUES},
};

static int64_t size_of(const struct rlhf__gguf_shape *s, int32_t size) {
    const int64_t queries = (int64_t)s->heads * s->head_dim;
    const int64_t keys = (int64_t)s->kv_heads * s->head_dim;
    const struct rlhf__gguf_mix *m = &s->mix;
    const int64_t values = (int64_t)m->value_heads * m->value_dim;
    switch (size) {
    case WIDTH:
        return s->width;
    case THREE_WIDTHS:
        return 3 * (int64_t)s->width;
    case TAPS:
        return m->taps;
    case STATE_ALL:
        return 2 * (int64_t)m->key_heads * m->key_dim + values;
    case STATE_VALUES:
        return values;
    case STATE_HEADS:
        return m->value_heads;
    case STATE_HEAD:
        return m->value_dim;
    case QUERIES:
        return queries;
    case QUERIES_AND_GATES:
        return 2 * queries;
    case KEYS:
        return keys;
    case QUERIES_KEYS_VALUES:
        return queries + 2 * keys;
    case HEAD:
        return s->head_dim;
    case MLP:
        return s->mlp;
    case GATE_AND_UP:
        return 2 * (int64_t)s->mlp;
    case VOCAB:
        return s->vocab;
    case CONTEXT:
        return s->context;
    default:
        return 1;
    }
}

// The size of the rows of a weight; sets *columns, ONE for a vector.
static int32_t rows_of(int32_t family, const char *stem, size_t n, int32_t *columns) {
    int32_t rows = WIDTH;
    *columns = ONE;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (strlen(shapes[i].stem) == n && memcmp(stem, shapes[i].stem, n) == 0) {
            rows = shapes[i].rows;
            *columns = shapes[i].columns;
        }
    // Phi-3 has gate and up in one tensor; OLMo 2 normalizes all heads together.
    if (family == RLHF__GGUF_PHI3 && rows == MLP) return GATE_AND_UP;
    if (family == RLHF__GGUF_OLMO2 && rows == HEAD) return stem[5] == 'q' ? QUERIES : KEYS;
    if (family == RLHF__GGUF_QWEN35 && rows == QUERIES) return QUERIES_AND_GATES;
    if (family == RLHF__GGUF_QWEN35 && rows == QUERIES_KEYS_VALUES) return STATE_ALL;
    return rows;
}

static rlhf_status check_shape(const struct rlhf__gguf_shape *s, const struct rlhf__tensor *t,
                               const char *stem, struct rlhf__error *err) {
    const char *dot = strrchr(stem, '.');
    char found[128], wanted[64];
    int32_t columns;
    const size_t len = dot ? (size_t)(dot - stem) : strlen(stem); // ssm_a lacks ".weight"
    const int32_t rows = rows_of(s->family, stem, len, &columns);
    if (dot && strcmp(dot, ".bias") == 0) columns = ONE;
    const int64_t want[2] = {size_of(s, rows), size_of(s, columns)};
    const int32_t n = columns == ONE ? 1 : 2;
    int same = t->ndim == n;
    for (int32_t i = 0; same && i < n; i++)
        same = t->shape[i] == want[i];
    if (same) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s: tensor %s has shape %s; by the file's keys it would be %s", t->file,
                      t->name, rlhf__tensor_shape_text(t->shape, t->ndim, found, sizeof found),
                      rlhf__tensor_shape_text(want, n, wanted, sizeof wanted));
}

rlhf_status rlhf__gguf_check_tensor(const struct rlhf__gguf_shape *s, const struct rlhf__tensor *t,
                                    struct rlhf__error *err) {
    const char *stem = t->name;
    if (strncmp(stem, "blk.", 4) == 0) {
        char *end;
        const long layer = strtol(stem + 4, &end, 10);
        if (layer >= s->layers)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s: tensor %s is of layer %ld, but the key %s.block_count is %d",
                              t->file, t->name, layer, rlhf__gguf_arch(s->family), (int)s->layers);
        stem = end + 1;
    }
    RLHF_TRY(rlhf__tensor_check_float(t, err));
    return check_shape(s, t, stem, err);
}

// ---- completeness ----

rlhf_status rlhf__gguf_check_complete(const struct rlhf__gguf_file *f,
                                      const struct rlhf__gguf_shape *s, struct rlhf__error *err) {
    char name[RLHF__GGUF_NAME_CAP];
    const int tied = !rlhf__gguf_tensor_find(f, "output.weight");
    for (size_t i = 0; rlhf__gguf_required(s->family, tied, &s->mix, s->layers, i, name); i++)
        if (!rlhf__gguf_tensor_find(f, name))
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s: the tensor %s is missing, which a model of the architecture %s "
                              "needs",
                              rlhf__gguf_path(f), name, rlhf__gguf_arch(s->family));
    return RLHF_OK;
}
