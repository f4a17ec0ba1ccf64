// transformer/model.c: the ops table: creating and destroying an instance, forward and backward.
#include "internal.h"

static const char magic_anchor = 0; // its address is different in every plugin

static void arch_finish(const rlhf_host *host, const struct rlhf_tf_arch *a) {
    host->free(host, a->rotary.frequency);
    host->free(host, a->rotary.other);
    host->free(host, a->rotary.layers);
    host->free(host, a->window_layers);
    host->free(host, a->mix_layers);
}

// 1 if a layer does not rotate.
static int32_t some_layer_stays(const struct rlhf_tf_arch *a) {
    for (int32_t i = 0; a->rotary.layers && i < a->n_layer; i++)
        if (a->rotary.layers[i] == RLHF_TF_TURN_NONE) return 1;
    return 0;
}

static const char *wrong_arch(const struct rlhf_tf_arch *a) {
    if (a->qk_norm && (!a->rotary.frequency || some_layer_stays(a)))
        return "norms of queries and keys are not implemented in layers that do not rotate";
    if (a->norm == RLHF_TF_NORM_LAYER && rlhf__tf_norms_after(a))
        return "norms of the outputs of blocks are implemented only as RMS norms";
    if (a->residual_scale != 0 && a->residual_scale != 1 &&
        (a->norm_at != RLHF_TF_NORM_BEFORE || !a->rotary.frequency))
        return "residual_scale is implemented only in stacks with rotary positions and norms "
               "before "
               "each block alone";
    if (a->mix_layers &&
        (a->window || !a->rotary.frequency || !a->out_in || !a->causal || rlhf__tf_norms_sums(a)))
        return "layers with a state are implemented only in causal stacks without windows, with "
               "rotary positions, and with linear layers stored as [out, in]";
    if (a->attn_gate && (!a->out_in || rlhf__tf_norms_sums(a)))
        return "gates of attention are implemented only with linear layers stored as [out, in]";
    return NULL;
}

rlhf_status rlhf_tf_create(const rlhf_host *host, const struct rlhf_tf_arch *arch, void **self) {
    *self = NULL;
    const char *wrong = wrong_arch(arch);
    if (wrong) {
        arch_finish(host, arch);
        return host->fail(host, RLHF_E_UNSUPPORTED, wrong);
    }
    struct rlhf__tf *m = host->alloc(host, sizeof *m);
    if (!m) {
        arch_finish(host, arch);
        return host->fail(host, RLHF_E_NOMEM, "out of memory for a model");
    }
    m->magic = &magic_anchor;
    m->host = host;
    m->arch = *arch;
    const double unit = arch->residual_scale != 0.0 ? arch->residual_scale : 1.0;
    m->arch.embed_scale = (arch->embed_scale != 0.0 ? arch->embed_scale : 1.0) / unit;
    m->stream_eps = arch->norm_eps / (unit * unit);
    rlhf__tf_mix_measure(m);
    *self = m;
    return RLHF_OK;
}

void rlhf_tf_destroy(void *self) {
    struct rlhf__tf *m = self;
    if (!m) return;
    if (m->c) {
        rlhf__tf_weights_close(m);
        rlhf__tf_work_finish(m, &m->train);
        rlhf__tf_work_finish(m, &m->infer);
        rlhf__tf_tap_finish(m);
        rlhf__tf_scratch_finish(m);
    }
    if (m->c) rlhf__tf_buf_finish(m, &m->turn);
    rlhf__tf_params_close(m);
    rlhf__tf_storage_close(m);
    arch_finish(m->host, &m->arch);
    m->host->free(m->host, m->host_tmp);
    m->host->free(m->host, m);
}

static rlhf_status tf_open(void *self, const rlhf_model_open *from) {
    struct rlhf__tf *m = self;
    rlhf_model_open o;
    RLHF_TRY(rlhf__tf_copy_in(m, "rlhf_model_open", &o, sizeof o, from,
                              RLHF_SIZE_TO(rlhf_model_open, compute)));
    RLHF_TRY(rlhf__tf_open_check(m, &o));
    RLHF_TRY(rlhf__tf_base_open(m, &o));
    m->open = o;
    m->c = o.compute;
    m->dtype = o.dtype;
    RLHF_TRY(rlhf__tf_adapter_open(m, o.adapter));
    m->open.adapter = NULL; // these are borrowed only until open() returns
    m->open.format_of = NULL;
    RLHF_TRY(rlhf__tf_storage_open(m, &o));
    RLHF_TRY(rlhf__tf_params_open(m));
    RLHF_TRY(rlhf__tf_weights_open(m));
    m->opened = 1;
    return RLHF_OK;
}

static uint32_t heads_of(const struct rlhf__tf *m) {
    uint32_t h = RLHF_HEAD_HIDDEN;
    if (rlhf__tf_has_lm(m)) h |= RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_KL;
    if (rlhf__tf_has_value(m)) h |= RLHF_HEAD_VALUE;
    if (m->open.n_labels > 0) h |= RLHF_HEAD_SCORE;
    if (m->arch.causal && m->open.n_labels == 1) h |= RLHF_HEAD_TOKEN_SCORE;
    return h;
}

static uint32_t caps_of(const struct rlhf__tf *m) {
    uint32_t c = RLHF_CAP_ADAPTER;
    if (rlhf__tf_weights_can_wait(m)) c |= RLHF_CAP_WANTED;
    if (m->arch.causal) c |= RLHF_CAP_PREFIX | RLHF_CAP_DEV_HIDDEN | RLHF_CAP_TURNS;
    if (rlhf__tf_has_lm(m)) {
        c |= RLHF_CAP_GENERATE | RLHF_CAP_SUPPORT;
        if (m->c->flags & RLHF_COMPUTE_DIVERGENCE) c |= RLHF_CAP_DIVERGENCE;
    }
    return c;
}

static int64_t elements(const rlhf_param *p) {
    int64_t n = 1;
    for (int32_t i = 0; i < p->ndim; i++)
        n *= p->shape[i];
    return n;
}

static rlhf_status tf_info(void *self, rlhf_model_info *out) {
    const struct rlhf__tf *m = self;
    const struct rlhf_tf_arch *a = &m->arch;
    const struct rlhf_tf_widths w = rlhf_tf_widths(a);
    const int64_t d = w.d;
    int64_t n = 0, mix = 0;
    for (int32_t l = 0; l < a->n_layer; l++)
        mix += rlhf__tf_site_outputs(m, l, TF_SITE_QKV) + rlhf__tf_site_inputs(m, l, TF_SITE_PROJ);
    for (uint32_t i = 0; i < m->n_tensors; i++)
        n += elements(&m->params[i]);
    rlhf_model_info i = {.size = sizeof i};
    i.heads = heads_of(m);
    i.caps = caps_of(m);
    i.n_params = n;
    i.flops_per_token =
        2 * (d * (mix + (int64_t)a->n_layer * (w.fc + w.inner)) +
             (rlhf__tf_has_lm(m) ? d * rlhf__tf_outputs(m) : 0) + rlhf__tf_adapter_size(m));
    i.n_vocab = rlhf__tf_outputs(m);
    i.n_ctx = a->n_ctx;
    i.d_model = a->d;
    i.n_layer = a->n_layer;
    i.n_tensors = (int32_t)m->n_tensors;
    i.causal = a->causal;
    i.base_prefix = a->base_prefix;
    i.grad_base = m->grads.p;
    i.grad_bytes = m->grads.p ? m->grads.bytes : 0;
    return rlhf_copy_out(out, &i, sizeof i, RLHF_SIZE_TO(rlhf_model_info, base_prefix));
}

static rlhf_status tf_param(void *self, uint32_t i, rlhf_param *out) {
    const struct rlhf__tf *m = self;
    if (i >= m->n_tensors) return RLHF_E_INVALID;
    return rlhf_copy_out(out, &m->params[i], sizeof *out, RLHF_SIZE_TO(rlhf_param, grad));
}

static rlhf_status tf_refresh(void *self) {
    struct rlhf__tf *m = self;
    m->train.valid = 0;
    if (m->settled && m->open.frozen)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "refresh: the model is frozen and its weights are packed already");
    if (!m->settled) RLHF_TRY(rlhf__tf_frozen_check(m));
    return rlhf__tf_weights_pack(m);
}

static int32_t needs_prompt_len(uint32_t heads, const rlhf_heads *out) {
    return (heads & (RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_KL | RLHF_HEAD_VALUE |
                     RLHF_HEAD_TOKEN_SCORE)) != 0 ||
           rlhf__tf_gives_dev_hidden(heads, out);
}

static rlhf_status check_forward(struct rlhf__tf *m, const rlhf_batch *b, const rlhf_forward *f,
                                 const rlhf_heads *out) {
    if (f->heads & ~heads_of(m))
        return rlhf__tf_fail(m, RLHF_E_UNSUPPORTED,
                             "forward: heads 0x%x wanted, this model has 0x%x", f->heads,
                             heads_of(m));
    if (f->flags & ~(uint32_t)RLHF_FORWARD_BASE)
        return rlhf__tf_fail(m, RLHF_E_UNSUPPORTED, "forward: flags 0x%x, this model knows 0x%x",
                             f->flags, RLHF_FORWARD_BASE);
    if (f->flags && f->train)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "forward: RLHF_FORWARD_BASE is not for training");
    if (f->train && !m->open.trainable)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "forward: the model was not opened for training");
    if (f->wanted && !rlhf__tf_weights_can_wait(m))
        return rlhf__tf_fail(m, RLHF_E_UNSUPPORTED,
                             "forward: wanted is set, but this model lacks RLHF_CAP_WANTED");
    if (rlhf__tf_gives_dev_hidden(f->heads, out) && !m->arch.causal)
        return rlhf__tf_fail(m, RLHF_E_UNSUPPORTED,
                             "forward: an encoder predicts no tokens, so it has no dev_hidden");
    RLHF_TRY(rlhf__tf_batch_check(m, b, needs_prompt_len(f->heads, out)));
    if ((f->heads & RLHF_HEAD_SCORE) && rlhf__tf_has_prefix(b->prefix, b->n))
        return rlhf__tf_fail(m, RLHF_E_UNSUPPORTED,
                             "forward: pooled scores of rows that share prefixes");
    return RLHF_OK;
}

static rlhf_status forward(struct rlhf__tf *m, const rlhf_batch *b, const rlhf_forward *f,
                           const rlhf_heads *out) {
    struct rlhf__tf_work *w = f->train ? &m->train : &m->infer;
    const struct rlhf__tf_layout l = {.n = b->n,
                                      .total = b->total,
                                      .ids = b->ids,
                                      .offset = b->offset,
                                      .prompt_len =
                                          needs_prompt_len(f->heads, out) ? b->prompt_len : NULL,
                                      .prefix = b->prefix,
                                      .turn = b->turn,
                                      .pooling = rlhf__tf_pooling(m),
                                      .ref = rlhf__tf_reference_rows(f)};
    w->valid = 0;
    if (f->wanted) m->train.valid = 0; // as in refresh()
    w->train = f->train != 0;
    w->keep = w->train && rlhf__tf_trunk_learns(m);
    w->plain = (f->flags & RLHF_FORWARD_BASE) != 0;
    w->heads = f->heads;
    RLHF_TRY(rlhf__tf_rows_upload(m, w, &l));
    RLHF_TRY(rlhf__tf_trunk(m, w, NULL, f));
    RLHF_TRY(rlhf__tf_heads(m, w, b, f, out));
    w->valid = 1;
    return RLHF_OK;
}

// The caller's structs, converted to this model's version.
struct passed {
    rlhf_batch b;
    rlhf_forward f;
    rlhf_heads h;
};

static rlhf_status take(struct rlhf__tf *m, const rlhf_batch *b, const rlhf_forward *f,
                        const rlhf_heads *h, struct passed *p) {
    RLHF_TRY(
        rlhf__tf_copy_in(m, "rlhf_batch", &p->b, sizeof p->b, b, RLHF_SIZE_TO(rlhf_batch, prefix)));
    RLHF_TRY(rlhf__tf_copy_in(m, "rlhf_forward", &p->f, sizeof p->f, f,
                              RLHF_SIZE_TO(rlhf_forward, kl_hidden)));
    RLHF_TRY(
        rlhf__tf_copy_in(m, "rlhf_heads", &p->h, sizeof p->h, h, RLHF_SIZE_TO(rlhf_heads, hidden)));
    return check_forward(m, &p->b, &p->f, &p->h);
}

static rlhf_status tf_forward(void *self, const rlhf_batch *b, const rlhf_forward *f,
                              const rlhf_heads *out) {
    struct rlhf__tf *m = self;
    struct passed p;
    RLHF_TRY(take(m, b, f, out, &p));
    return forward(m, &p.b, &p.f, &p.h);
}

static rlhf_status tf_backward(void *self, const rlhf_batch *b, const rlhf_forward *f,
                               const rlhf_heads *grad) {
    struct rlhf__tf *m = self;
    const struct rlhf__tf_work *w = &m->train;
    struct passed p;
    RLHF_TRY(take(m, b, f, grad, &p));
    if (!p.f.train || !w->valid || w->rows.n != p.b.n || w->rows.total != p.b.total ||
        w->heads != p.f.heads ||
        (w->rows.ragged.prefix_base != NULL) != rlhf__tf_has_prefix(p.b.prefix, p.b.n))
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "backward: no forward with train = 1 of this batch came before");
    return rlhf__tf_heads_bwd(m, &m->train, &p.b, &p.f, &p.h);
}

const rlhf_model_ops rlhf_tf_ops = {
    .size = sizeof(rlhf_model_ops),
    .compute_major = RLHF_COMPUTE_MAJOR,
    .compute_minor = RLHF_COMPUTE_MINOR,
    .open = tf_open,
    .info = tf_info,
    .param = tf_param,
    .refresh = tf_refresh,
    .forward = tf_forward,
    .backward = tf_backward,
    .gen_open = rlhf__tf_gen_open,
    .gen_step = rlhf__tf_gen_step,
    .gen_close = rlhf__tf_gen_close,
    .trim = rlhf__tf_trim,
    .fill_begin = rlhf__tf_fill_begin,
    .fill_end = rlhf__tf_fill_end,
    .fill_blocks = rlhf__tf_fill_blocks,
};
