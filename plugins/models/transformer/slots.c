// transformer/slots.c: the tensors of an instance, with the shapes and initializations that follow
// from its architecture. Also helpers for reading config.json. storage.c allocates the tensors. The
// tensors' names are in the architecture's lists.
#include "internal.h"

#include <math.h>
#include <string.h>

static struct rlhf__tf_shape matrix(int32_t rows, int32_t cols, double std) {
    struct rlhf__tf_shape s = {rows, cols, RLHF_PARAM_DECAY, RLHF_INIT_NORMAL, RLHF_PARAM_TRUNK,
                               std};
    return s;
}

static struct rlhf__tf_shape vector(int32_t n, uint32_t init) {
    struct rlhf__tf_shape s = {n, 0, 0, init, RLHF_PARAM_TRUNK, 0};
    return s;
}

static struct rlhf__tf_shape absent(void) { return vector(0, RLHF_INIT_ZERO); }

// A matrix of the trunk with k inputs and n outputs, in the architecture's storage order.
static struct rlhf__tf_shape linear(const struct rlhf__tf *m, int32_t k, int32_t n, double std) {
    struct rlhf__tf_shape s = m->arch.out_in ? matrix(n, k, std) : matrix(k, n, std);
    if (!m->arch.out_in) s.flags |= RLHF_PARAM_IN_OUT;
    return s;
}

static struct rlhf__tf_shape bias(const struct rlhf__tf *m, int32_t which, int32_t n) {
    return m->arch.bias & which ? vector(n, RLHF_INIT_ZERO) : absent();
}

// The gain of a norm over n values.
static struct rlhf__tf_shape gain(const struct rlhf__tf *m, int32_t n) {
    return vector(n, m->arch.norm_offset == 0.0 ? RLHF_INIT_ONE : RLHF_INIT_ZERO);
}

// The gain of the norm of queries or keys, which have n elements in all.
static struct rlhf__tf_shape qk_gain(const struct rlhf__tf *m, int32_t n) {
    if (m->arch.qk_norm == RLHF_TF_QK_NORM_NONE) return absent();
    return gain(m, m->arch.qk_norm == RLHF_TF_QK_NORM_HEAD ? m->arch.head_dim : n);
}

static struct rlhf__tf_shape offset(const struct rlhf__tf *m, int32_t n) {
    return m->arch.norm == RLHF_TF_NORM_RMS ? absent() : vector(n, RLHF_INIT_ZERO);
}

static struct rlhf__tf_shape in_group(struct rlhf__tf_shape s, int32_t group) {
    s.group = group;
    return s;
}

// value_init determines how the last layer of the value head is initialized. With ZERO, the hidden
// layer of an mlp head is initialized as an orthogonal matrix, with the gain for a ReLU. If the
// hidden layer were zero too, its gradients would stay zero.
static struct rlhf__tf_shape value_matrix(const struct rlhf__tf *m, int32_t rows, int32_t cols,
                                          int32_t hidden) {
    struct rlhf__tf_shape s = in_group(matrix(rows, cols, 0), RLHF_PARAM_VALUE);
    switch (m->open.value_init) {
    case RLHF_VALUE_INIT_NORMAL:
        s.init_std = 1.0 / sqrt((double)cols + 1.0);
        break;
    case RLHF_VALUE_INIT_ORTHOGONAL:
        s.init = RLHF_INIT_ORTHOGONAL;
        s.init_std = hidden ? sqrt(2.0) : 1.0;
        break;
    default:
        s.init = hidden ? RLHF_INIT_ORTHOGONAL : RLHF_INIT_ZERO;
        s.init_std = hidden ? sqrt(2.0) : 0.0;
        break;
    }
    return s;
}

static struct rlhf__tf_shape value_shape(const struct rlhf__tf *m, int32_t slot) {
    const int32_t d = m->arch.d, mlp = m->open.value_kind == RLHF_VALUE_MLP;
    if (!rlhf__tf_has_value(m)) return absent();
    switch (slot) {
    case RLHF_TF_V1_W:
        return mlp ? value_matrix(m, 4 * d, d, 1) : absent();
    case RLHF_TF_V1_B:
        return mlp ? in_group(vector(4 * d, RLHF_INIT_ZERO), RLHF_PARAM_VALUE) : absent();
    case RLHF_TF_V2_W:
        return value_matrix(m, 1, mlp ? 4 * d : d, 0);
    default:
        return in_group(vector(1, RLHF_INIT_ZERO), RLHF_PARAM_VALUE);
    }
}

static struct rlhf__tf_shape score_shape(const struct rlhf__tf *m, int32_t slot) {
    const struct rlhf_tf_arch *a = &m->arch;
    struct rlhf__tf_shape s = absent();
    if (m->open.n_labels <= 0) return s;
    const double std =
        m->open.score_init == RLHF_SCORE_INIT_REWARD ? 1.0 / sqrt(a->d + 1.0) : a->init_std;
    if (slot == RLHF_TF_SCORE_W) s = matrix(m->open.n_labels, a->d, std);
    if (slot == RLHF_TF_SCORE_B && a->score_bias) s = vector(m->open.n_labels, RLHF_INIT_ZERO);
    if (slot == RLHF_TF_POOL_W && a->score_hidden) s = matrix(a->d, a->d, a->init_std);
    if (slot == RLHF_TF_POOL_B && a->score_hidden) s = vector(a->d, RLHF_INIT_ZERO);
    return in_group(s, RLHF_PARAM_SCORE);
}

static struct rlhf__tf_shape global_shape(const struct rlhf__tf *m, int32_t slot) {
    const struct rlhf_tf_arch *a = &m->arch;
    struct rlhf__tf_shape s = absent();
    switch (slot) {
    case RLHF_TF_WTE:
        s = matrix(a->n_vocab, a->d, a->init_std);
        s.flags |= RLHF_PARAM_EMBED;
        return s;
    case RLHF_TF_WPE:
        if (a->rotary.frequency) return s;
        s = matrix(a->n_ctx, a->d, a->init_std);
        s.flags |= RLHF_PARAM_EMBED;
        return s;
    case RLHF_TF_EMB_G:
        return rlhf__tf_norms_sums(a) ? gain(m, a->d) : s;
    case RLHF_TF_EMB_B:
        return rlhf__tf_norms_sums(a) ? offset(m, a->d) : s;
    case RLHF_TF_FINAL_G:
        return rlhf__tf_norms_sums(a) ? s : gain(m, a->d);
    case RLHF_TF_FINAL_B:
        return rlhf__tf_norms_sums(a) ? s : offset(m, a->d);
    case RLHF_TF_LM:
        if (a->tied || !rlhf__tf_has_lm(m)) return s;
        s = matrix(a->n_vocab, a->d, a->init_std);
        s.flags |= RLHF_PARAM_EMBED;
        return s;
    case RLHF_TF_POOL_W:
    case RLHF_TF_POOL_B:
    case RLHF_TF_SCORE_W:
    case RLHF_TF_SCORE_B:
        return score_shape(m, slot);
    default:
        return value_shape(m, slot);
    }
}

// A bias of a product of n outputs; in attention and the MLP, `which` tells whether it exists.
static struct rlhf__tf_shape mix_bias(const struct rlhf__tf *m, int32_t layer, int32_t which,
                                      int32_t n) {
    const enum rlhf_tf_mix mix = rlhf__tf_mix_of(&m->arch, layer);
    if (mix == RLHF_TF_ATTENTION) return bias(m, which, n);
    return mix == RLHF_TF_CONV && m->arch.state.bias ? vector(n, RLHF_INIT_ZERO) : absent();
}

// A slot that only layers with a state have.
static struct rlhf__tf_shape state_shape(const struct rlhf__tf *m, int32_t layer, int32_t slot) {
    const struct rlhf_tf_state *s = &m->arch.state;
    const enum rlhf_tf_mix mix = rlhf__tf_mix_of(&m->arch, layer);
    const int32_t channels = mix == RLHF_TF_CONV ? m->arch.d : rlhf__tf_delta_channels(s);
    if (mix == RLHF_TF_ATTENTION) return absent();
    if (slot == RLHF_TF_CONV_W) return matrix(channels, s->taps, m->arch.init_std);
    if (slot == RLHF_TF_CONV_B) return mix_bias(m, layer, 0, channels);
    if (mix == RLHF_TF_CONV) return absent();
    if (slot == RLHF_TF_MIX_G) return vector(s->value_dim, RLHF_INIT_ONE);
    struct rlhf__tf_shape v = vector(s->value_heads, RLHF_INIT_ONE);
    if (slot != RLHF_TF_A_LOG) return v;
    v.init = RLHF_INIT_LOG_UNIFORM;
    v.init_std = 16;
    return v;
}

static struct rlhf__tf_shape layer_shape(const struct rlhf__tf *m, int32_t layer, int32_t slot) {
    const struct rlhf_tf_arch *a = &m->arch;
    const struct rlhf_tf_widths n = rlhf_tf_widths(a);
    const struct rlhf__tf_mix_widths mix = rlhf__tf_mix_widths(a, layer);
    const int32_t attention = rlhf__tf_mix_of(a, layer) == RLHF_TF_ATTENTION;
    const double std = a->init_std;
    const double res = a->residual_init ? std / sqrt(2.0 * a->n_layer) : std;
    switch (slot) {
    case RLHF_TF_N1_G:
    case RLHF_TF_N2_G:
        return a->norm_at == RLHF_TF_NORM_AFTER ? absent() : gain(m, a->d);
    case RLHF_TF_N1_B:
    case RLHF_TF_N2_B:
        return a->norm_at == RLHF_TF_NORM_AFTER ? absent() : offset(m, a->d);
    case RLHF_TF_P1_G:
    case RLHF_TF_P2_G:
        return rlhf__tf_norms_after(a) ? gain(m, a->d) : absent();
    case RLHF_TF_QN_G:
        return attention ? qk_gain(m, n.q) : absent();
    case RLHF_TF_KN_G:
        return attention ? qk_gain(m, n.kv) : absent();
    case RLHF_TF_CONV_W:
    case RLHF_TF_CONV_B:
    case RLHF_TF_A_LOG:
    case RLHF_TF_DT_BIAS:
    case RLHF_TF_MIX_G:
        return state_shape(m, layer, slot);
    case RLHF_TF_QKV_W:
        return linear(m, n.d, mix.first, std);
    case RLHF_TF_QKV_B:
        return mix_bias(m, layer, RLHF_TF_BIAS_QKV, mix.first);
    case RLHF_TF_PROJ_W:
        return linear(m, mix.mixed, n.d, res);
    case RLHF_TF_FC_W:
        return linear(m, n.d, n.fc, std);
    case RLHF_TF_FC_B:
        return bias(m, RLHF_TF_BIAS_MLP, n.fc);
    case RLHF_TF_OUT_W:
        return linear(m, n.inner, n.d, res);
    case RLHF_TF_PROJ_B:
        return mix_bias(m, layer, RLHF_TF_BIAS_PROJ, n.d);
    default:
        return bias(m, RLHF_TF_BIAS_MLP, n.d); // RLHF_TF_OUT_B
    }
}

int32_t rlhf__tf_slot_only_packed(int32_t layer, int32_t slot) {
    if (layer >= 0)
        return slot == RLHF_TF_QKV_W || slot == RLHF_TF_PROJ_W || slot == RLHF_TF_FC_W ||
               slot == RLHF_TF_OUT_W;
    return slot == RLHF_TF_LM || slot == RLHF_TF_POOL_W || slot == RLHF_TF_SCORE_W ||
           slot == RLHF_TF_V1_W || slot == RLHF_TF_V2_W;
}

struct rlhf__tf_shape rlhf__tf_slot_shape(const struct rlhf__tf *m, int32_t layer, int32_t slot) {
    return layer < 0 ? global_shape(m, slot) : layer_shape(m, layer, slot);
}

struct rlhf__tf_span rlhf__tf_piece_rows(const struct rlhf__tf *m, int32_t layer,
                                         const struct rlhf_tf_name *name) {
    const struct rlhf_tf_widths n = rlhf_tf_widths(&m->arch);
    const int32_t queries = n.qkv - 2 * n.kv; // with their gates
    const struct rlhf_tf_state *s = &m->arch.state;
    const int32_t channels = rlhf__tf_delta_channels(s), z = rlhf__tf_delta_values(s);
    switch (name->piece) {
    case RLHF_TF_QUERIES:
        return (struct rlhf__tf_span){0, queries};
    case RLHF_TF_KEYS:
        return (struct rlhf__tf_span){queries, n.kv};
    case RLHF_TF_VALUES:
        return (struct rlhf__tf_span){queries + n.kv, n.kv};
    case RLHF_TF_DELTA_QKV:
        return (struct rlhf__tf_span){0, channels};
    case RLHF_TF_DELTA_Z:
        return (struct rlhf__tf_span){channels, z};
    case RLHF_TF_DELTA_B:
        return (struct rlhf__tf_span){channels + z, s->value_heads};
    case RLHF_TF_DELTA_A:
        return (struct rlhf__tf_span){channels + z + s->value_heads, s->value_heads};
    case RLHF_TF_GATE:
        return (struct rlhf__tf_span){0, n.inner};
    case RLHF_TF_UP:
        return (struct rlhf__tf_span){n.inner, n.inner};
    default:
        return (struct rlhf__tf_span){0, rlhf__tf_slot_shape(m, layer, name->slot).rows};
    }
}

// ---- functions for the architecture's plugin ----

rlhf_status rlhf_tf_activation(const rlhf_host *host, const char *key, const char *name,
                               int32_t *out) {
    static const struct {
        const char *name;
        int32_t act;
    } known[] = {{"gelu_new", RLHF_ACT_GELU_TANH}, {"gelu_pytorch_tanh", RLHF_ACT_GELU_TANH},
                 {"gelu", RLHF_ACT_GELU_ERF},      {"relu", RLHF_ACT_RELU},
                 {"silu", RLHF_ACT_SILU},          {"swish", RLHF_ACT_SILU},
                 {"relu2", RLHF_ACT_RELU2}};
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i].name)) {
            *out = known[i].act;
            return RLHF_OK;
        }
    return rlhf_failf(host, RLHF_E_UNSUPPORTED,
                      "config.json: %s \"%s\" is not implemented; known: silu, gelu, gelu_new, "
                      "gelu_pytorch_tanh, relu, relu2",
                      key, name ? name : "null");
}

double rlhf_tf_attn_scale(const struct rlhf_tf_arch *a) { return 1.0 / sqrt((double)a->head_dim); }

rlhf_status rlhf_tf_check(const rlhf_host *host, const struct rlhf_tf_arch *a, const char *d_key,
                          const char *head_key) {
    if (a->d % a->n_head)
        return rlhf_failf(host, RLHF_E_INVALID,
                          "config.json: %s (%d) must be a multiple of %s (%d)", d_key, a->d,
                          head_key, a->n_head);
    return RLHF_OK;
}
