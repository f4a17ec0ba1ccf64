// transformer/open.c: what open() refuses: settings that the model or its compute backend does not
// support, and a base whose trunk cannot be shared (rlhf_model_open.base).
#include "internal.h"

#include <string.h>

// ---- settings ----

// The operations that the core calls, and those that it calls only in training.
// clang-format off
#define FORWARD_OPS(X)                                                                             \
    X(weight_create) X(weight_destroy) X(weight_pack) X(linear) X(embed) X(act) X(gather) X(pool)  \
    X(kv_store) X(attention) X(lm_head) X(lm_sample)
#define BACKWARD_OPS(X)                                                                            \
    X(linear_dx) X(linear_dw) X(embed_bwd) X(act_bwd) X(add) X(scatter_add) X(pool_bwd)            \
    X(attention_bwd) X(lm_head_bwd)
// clang-format on
#define RETURN_IF_LACKING(f)                                                                       \
    if (!RLHF_COMPUTE_HAS(c, f)) return #f;
#define RETURN_IF_NEEDED(when, f, f_bwd)                                                           \
    if (when) {                                                                                    \
        RETURN_IF_LACKING(f)                                                                       \
        if (trainable) RETURN_IF_LACKING(f_bwd)                                                    \
    }

// The name of a required operation that the table does not have, or NULL.
static const char *lacking(const rlhf_compute *c, const struct rlhf_tf_arch *a, int32_t trainable,
                           int32_t adapter) {
    FORWARD_OPS(RETURN_IF_LACKING)
    if (trainable) {
        BACKWARD_OPS(RETURN_IF_LACKING)
    }
    RETURN_IF_NEEDED(a->norm == RLHF_TF_NORM_LAYER, norm, norm_bwd)
    RETURN_IF_NEEDED(a->norm == RLHF_TF_NORM_RMS, rms_norm, rms_norm_bwd)
    RETURN_IF_NEEDED(a->gated, gate, gate_bwd)
    RETURN_IF_NEEDED(rlhf__tf_norms_after(a), add, add)
    RETURN_IF_NEEDED(a->rotary.frequency, rope, rope_bwd)
    const char *mix = rlhf__tf_mix_lacking(c, a, trainable);
    if (mix) return mix;
    if (adapter) {
        RETURN_IF_LACKING(weight_create_blocks)
        RETURN_IF_LACKING(linear_sum)
    }
    return NULL;
}

// Asks the backend, so that it refuses a geometry that it does not support before the first
// forward.
static rlhf_status check_geometry(const struct rlhf_tf_arch *a, const rlhf_model_open *o) {
    const rlhf_compute *c = o->compute;
    const int64_t width = (int64_t)a->n_head * a->head_dim;
    const rlhf_attn attn = {.size = sizeof attn,
                            .heads = a->n_head,
                            .kv_heads = a->n_kv_head,
                            .head_dim = a->head_dim,
                            .causal = a->causal,
                            .dtype = o->dtype,
                            .q_stride = rlhf_tf_widths(a).qkv,
                            .kv_stride = rlhf_tf_widths(a).qkv,
                            .out_stride = width,
                            .scale = a->attn_scale,
                            .window = a->window,
                            .softcap = a->attn_softcap};
    const uint32_t forward = RLHF_COMPUTE_OP(attention), backward = RLHF_COMPUTE_OP(attention_bwd);
    rlhf_call call = {.size = sizeof call, .op = forward, .dtype = o->dtype, .attn = &attn};
    if (!RLHF_COMPUTE_HAS(c, supports)) return RLHF_OK;
    RLHF_TRY(c->supports(c->ctx, &call));
    call.op = backward;
    if (o->trainable) RLHF_TRY(c->supports(c->ctx, &call));
    return rlhf__tf_mix_check(a, o);
}

rlhf_status rlhf__tf_open_check(struct rlhf__tf *m, const rlhf_model_open *o) {
    if (m->opened) return rlhf__tf_fail(m, RLHF_E_INVALID, "open: the model is open already");
    if (!o->compute) return rlhf__tf_fail(m, RLHF_E_INVALID, "open: no compute table");
    const char *op = lacking(o->compute, &m->arch, o->trainable, o->adapter != NULL);
    if (op)
        return rlhf__tf_fail(m, RLHF_E_UNSUPPORTED,
                             "open: the compute backend '%s' does not support %s, which this model "
                             "needs",
                             o->compute->name, op);
    if (o->dtype != RLHF_F32 && o->dtype != RLHF_BF16)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "open: dtype %d is neither f32 nor bf16", o->dtype);
    if (o->n_labels < 0 || o->n_labels > 65536)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "open: n_labels %d is outside 0 .. 65536",
                             o->n_labels);
    if (o->pooling < 0 || o->pooling > RLHF_POOL_LAST)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "open: unknown pooling %d", o->pooling);
    if (o->score_init < 0 || o->score_init > RLHF_SCORE_INIT_REWARD)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "open: unknown start of the score head %d",
                             o->score_init);
    if (o->value_kind < 0 || o->value_kind > RLHF_VALUE_MLP)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "open: unknown value head %d", o->value_kind);
    if (o->n_tokens < 0)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "open: n_tokens %d is negative", o->n_tokens);
    if (o->frozen && o->trainable)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "open: a frozen model cannot be trained");
    if (o->recompute < RLHF_RECOMPUTE_NONE || o->recompute > RLHF_RECOMPUTE_LAYER)
        return rlhf__tf_fail(m, RLHF_E_UNSUPPORTED, "open: unknown recompute %d", o->recompute);
    if (o->value_kind && !m->arch.causal)
        return rlhf__tf_fail(m, RLHF_E_UNSUPPORTED,
                             "an encoder reads whole texts and cannot write them, so it has no "
                             "value head; give a language model that writes from left to right");
    return check_geometry(&m->arch, o);
}

// ---- the base ----

static int32_t same_bytes(const void *a, const void *b, size_t bytes) {
    return !a == !b && (!a || !memcmp(a, b, bytes));
}

static int32_t same_rotary(const struct rlhf_tf_arch *a, const struct rlhf_tf_arch *b) {
    const struct rlhf_tf_rotary *x = &a->rotary, *y = &b->rotary;
    const size_t pairs = (size_t)rlhf__tf_rotary_dim(a) / 2 * sizeof *x->frequency;
    return x->dim == y->dim && x->scale == y->scale &&
           same_bytes(x->frequency, y->frequency, pairs) && same_bytes(x->other, y->other, pairs) &&
           same_bytes(x->layers, y->layers, (size_t)a->n_layer);
}

static int32_t same_window(const struct rlhf_tf_arch *a, const struct rlhf_tf_arch *b) {
    for (int32_t l = 0; l < a->n_layer; l++)
        if (rlhf__tf_window(a, l) != rlhf__tf_window(b, l)) return 0;
    return 1;
}

static int32_t same_mix(const struct rlhf_tf_arch *a, const struct rlhf_tf_arch *b) {
    const struct rlhf_tf_state *x = &a->state, *y = &b->state;
    return same_bytes(a->mix_layers, b->mix_layers, (size_t)a->n_layer) &&
           a->attn_gate == b->attn_gate && x->taps == y->taps && x->bias == y->bias &&
           x->key_heads == y->key_heads && x->value_heads == y->value_heads &&
           x->key_dim == y->key_dim && x->value_dim == y->value_dim;
}

// 1 if both trunks compute the same functions from the same weights.
static int32_t same_trunk(const struct rlhf_tf_arch *a, const struct rlhf_tf_arch *b) {
    return a->n_vocab == b->n_vocab && a->n_ctx == b->n_ctx && a->d == b->d &&
           a->n_layer == b->n_layer && a->d_inner == b->d_inner && a->n_head == b->n_head &&
           a->n_kv_head == b->n_kv_head && a->head_dim == b->head_dim && a->norm == b->norm &&
           a->norm_at == b->norm_at && a->causal == b->causal && a->act == b->act &&
           a->gated == b->gated && a->qk_norm == b->qk_norm && a->bias == b->bias &&
           a->out_in == b->out_in && a->tied == b->tied && a->scale_by_layer == b->scale_by_layer &&
           a->attn_scale == b->attn_scale && a->attn_softcap == b->attn_softcap &&
           a->norm_eps == b->norm_eps && a->norm_offset == b->norm_offset &&
           a->embed_scale == b->embed_scale && a->embed_rounded == b->embed_rounded &&
           a->residual_scale == b->residual_scale && a->logit_scale == b->logit_scale &&
           a->softcap == b->softcap && same_window(a, b) && same_mix(a, b) && same_rotary(a, b);
}

static rlhf_status check_base(struct rlhf__tf *m, const rlhf_model_open *o,
                              const struct rlhf__tf *b) {
    if (b->magic != m->magic || !b->opened || b == m)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "open: the base is not an open model of the same plugin");
    if (!same_trunk(&m->arch, &b->arch) || b->dtype != o->dtype || b->c != o->compute)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "open: the base differs in config, dtype or compute table");
    if (!b->base && !b->low && !b->open.frozen)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "open: the base is trained itself; it must be frozen or have an "
                             "adapter");
    if (o->trainable && !b->open.trainable)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "open: the base was not opened for training, so its weights lead no "
                             "gradients back");
    if (o->n_tokens && o->n_tokens != b->open.n_tokens)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "open: n_tokens is %d, the base's is %d",
                             o->n_tokens, b->open.n_tokens);
    return RLHF_OK;
}

rlhf_status rlhf__tf_base_open(struct rlhf__tf *m, rlhf_model_open *o) {
    struct rlhf__tf *b;
    if (!o->base) return RLHF_OK;
    memcpy(&b, &o->base, sizeof b); // not const: its LM head is packed on first use
    RLHF_TRY(check_base(m, o, b));
    m->base = b->base ? b->base : b;
    o->n_tokens = m->base->open.n_tokens;
    const int32_t lm = !m->arch.tied && m->arch.causal && o->n_labels == 0;
    if (lm && m->base->open.n_labels > 0) {
        m->base = NULL;
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "open: the base is a classifier without an LM head, which this model "
                             "needs");
    }
    return RLHF_OK;
}
