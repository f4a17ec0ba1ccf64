// transformer/base.c: sharing the trunk of another instance (rlhf_model_open.base). Finds that
// instance and checks that its trunk can be shared.
#include "internal.h"

#include <string.h>

// 1 if both trunks compute the same functions from the same weights.
static int32_t same_trunk(const struct rlhf_tf_arch *a, const struct rlhf_tf_arch *b) {
    const size_t pairs = (size_t)a->head_dim / 2 * sizeof *a->rotary.frequency;
    return a->n_vocab == b->n_vocab && a->n_ctx == b->n_ctx && a->d == b->d &&
           a->n_layer == b->n_layer && a->d_inner == b->d_inner && a->n_head == b->n_head &&
           a->n_kv_head == b->n_kv_head && a->head_dim == b->head_dim && a->norm == b->norm &&
           a->pre_norm == b->pre_norm && a->causal == b->causal && a->act == b->act &&
           a->gated == b->gated && a->head_norm == b->head_norm && a->bias == b->bias &&
           a->out_in == b->out_in && a->tied == b->tied && a->scale_by_layer == b->scale_by_layer &&
           a->attn_scale == b->attn_scale && a->norm_eps == b->norm_eps &&
           a->rotary.scale == b->rotary.scale && !a->rotary.frequency == !b->rotary.frequency &&
           (!a->rotary.frequency || !memcmp(a->rotary.frequency, b->rotary.frequency, pairs));
}

static rlhf_status check(struct rlhf__tf *m, const rlhf_model_open *o, const struct rlhf__tf *b) {
    if (b->magic != m->magic || !b->opened || b == m)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "open: the base is no open model of the same plugin");
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
    RLHF_TRY(check(m, o, b));
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
