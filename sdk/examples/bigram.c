// bigram.c: a minimal language model in one file. The next token depends only on the last one:
// logits = W e(last), with an embedding e [vocab, d] and a head W [vocab, d] (log-bilinear, Mnih
// and Hinton 2007). The file shows how to implement the functions of a model (open, info, param,
// refresh, forward, backward, gen_*) with the compute table alone.
//
// If a call of the table fails, the model need not add a message, because the backend has already
// passed one to the host. The model has only the log-prob and entropy heads (info.heads), and of
// the optional abilities only RLHF_CAP_GENERATE (info.caps). The host refuses runs that need
// others. The model computes in f32 only (--set compute.dtype=f32). Its config.json has
// "model_type": "bigram".
#include <rlhf/log.h>
#include <rlhf/model.h>

struct config {
    int64_t vocab_size, d_model, n_positions;
};

enum { WTE, HEAD, N_PARAMS };

struct bigram {
    const rlhf_host *host;
    const struct config *config;
    const rlhf_compute *c;
    int32_t vocab, d, trainable, reserved; // vocab: ids that have a token
    rlhf_param param[N_PARAMS];
    rlhf_weight *packed; // of the head
    // The arrays below, on the host and on the device, have space for up to `cap` scored tokens.
    uint32_t cap, rows;
    int32_t *host_last, *host_target;
    float *host_out; // [3 cap]: logp, entropy; d_logp, d_entropy
    rlhf_dev last, target, logp, entropy, d_logp, d_entropy; // [cap]
    rlhf_dev hidden, d_hidden;                               // f32 [cap, d]
};

static rlhf_status refuse(const struct bigram *m, const char *what) {
    return rlhf_failf(m->host, RLHF_E_UNSUPPORTED, "a bigram model has no %s", what);
}

// ---- memory ----

static void release_rows(struct bigram *m) {
    rlhf_dev all[] = {m->last,   m->target,    m->logp,   m->entropy,
                      m->d_logp, m->d_entropy, m->hidden, m->d_hidden};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        m->c->release(m->c->ctx, all[i]);
    m->last = m->target = m->logp = m->entropy = m->d_logp = m->d_entropy = NULL;
    m->hidden = m->d_hidden = NULL;
    m->host->free(m->host, m->host_last);
    m->host->free(m->host, m->host_out);
    m->host_last = m->host_target = NULL;
    m->host_out = NULL;
    m->cap = 0;
}

static rlhf_status room(struct bigram *m, uint32_t rows) {
    const uint64_t wide = 4 * (uint64_t)rows, row = wide * (uint64_t)m->d;
    if (rows <= m->cap) return RLHF_OK;
    release_rows(m);
    rlhf_dev *const small[] = {&m->last,    &m->target, &m->logp,
                               &m->entropy, &m->d_logp, &m->d_entropy};
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        RLHF_TRY(m->c->alloc(m->c->ctx, wide, small[i]));
    RLHF_TRY(m->c->alloc(m->c->ctx, row, &m->hidden));
    RLHF_TRY(m->c->alloc(m->c->ctx, row, &m->d_hidden));
    m->host_last = m->host->alloc(m->host, 2 * wide);
    m->host_out = m->host->alloc(m->host, 2 * wide);
    if (!m->host_last || !m->host_out) return m->host->fail(m->host, RLHF_E_NOMEM, "out of memory");
    m->host_target = m->host_last + rows;
    m->cap = rows;
    return RLHF_OK;
}

// ---- life ----

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct bigram *m = host->alloc(host, sizeof *m);
    if (!m) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    m->host = host;
    m->config = config;
    *self = m;
    return RLHF_OK;
}

static void destroy(void *self) {
    struct bigram *m = self;
    if (!m) return;
    if (m->c) {
        release_rows(m);
        for (int i = 0; i < N_PARAMS; i++) {
            m->c->release(m->c->ctx, m->param[i].value);
            m->c->release(m->c->ctx, m->param[i].grad);
        }
        m->c->weight_destroy(m->c->ctx, m->packed);
    }
    m->host->free(m->host, m);
}

static rlhf_status make_param(struct bigram *m, int i, const char *name, uint32_t flags) {
    const uint64_t bytes = 4 * (uint64_t)m->config->vocab_size * (uint64_t)m->d;
    rlhf_param *p = &m->param[i];
    p->size = sizeof *p;
    p->ndim = 2;
    p->name = name;
    p->shape[0] = m->config->vocab_size;
    p->shape[1] = m->d;
    p->group = RLHF_PARAM_TRUNK;
    p->flags = flags;
    p->init = RLHF_INIT_NORMAL;
    p->init_std = 0.02;
    RLHF_TRY(m->c->alloc(m->c->ctx, bytes, &p->value));
    return m->trainable ? m->c->alloc(m->c->ctx, bytes, &p->grad) : RLHF_OK;
}

static rlhf_status open_model(void *self, const rlhf_model_open *o) {
    struct bigram *m = self;
    m->c = o->compute;
    if (o->dtype != RLHF_F32) return refuse(m, "bf16 (--set compute.dtype=f32)");
    if (o->n_labels > 0) return refuse(m, "score head");
    if (o->value_kind != RLHF_VALUE_NONE) return refuse(m, "value head");
    if (o->adapter || o->base) return refuse(m, "adapter");
    m->vocab = (int32_t)m->config->vocab_size;
    if (o->n_tokens > 0 && o->n_tokens < m->vocab) m->vocab = o->n_tokens;
    m->d = (int32_t)m->config->d_model;
    m->trainable = o->trainable;
    RLHF_TRY(make_param(m, WTE, "wte.weight", RLHF_PARAM_EMBED | RLHF_PARAM_DECAY));
    RLHF_TRY(make_param(m, HEAD, "lm_head.weight", RLHF_PARAM_DECAY));
    const uint32_t flags = RLHF_WEIGHT_OUT_IN | (m->trainable ? RLHF_WEIGHT_BACKWARD : 0u);
    return m->c->weight_create(m->c->ctx, m->d, m->vocab, RLHF_F32, flags, &m->packed);
}

static rlhf_status info(void *self, rlhf_model_info *out) {
    const struct bigram *m = self;
    const int64_t one = m->config->vocab_size * m->d;
    rlhf_model_info i = {.size = sizeof i,
                         .heads = RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY,
                         .caps = RLHF_CAP_GENERATE,
                         .n_params = 2 * one,
                         .flops_per_token = 2 * one,
                         .n_vocab = m->vocab,
                         .n_ctx = (int32_t)m->config->n_positions,
                         .d_model = m->d,
                         .n_layer = 1,
                         .n_tensors = N_PARAMS,
                         .causal = 1,
                         .base_prefix = ""};
    return rlhf_copy_out(out, &i, sizeof i, RLHF_SIZE_TO(rlhf_model_info, base_prefix));
}

static rlhf_status param(void *self, uint32_t i, rlhf_param *out) {
    const struct bigram *m = self;
    if (i >= N_PARAMS) return RLHF_E_INVALID;
    return rlhf_copy_out(out, &m->param[i], sizeof *out, RLHF_SIZE_TO(rlhf_param, grad));
}

static rlhf_status refresh(void *self) {
    struct bigram *m = self;
    return m->c->weight_pack(m->c->ctx, m->packed, m->param[HEAD].value);
}

// ---- forward and backward ----

static rlhf_status upload(struct bigram *m, rlhf_dev to, const void *from, uint32_t n) {
    return m->c->upload(m->c->ctx, to, from, 4 * (uint64_t)n);
}

// Computes hidden [rows, d] = e(last).
static rlhf_status embed(struct bigram *m, uint32_t rows) {
    RLHF_TRY(upload(m, m->last, m->host_last, rows));
    return m->c->embed(m->c->ctx, m->hidden, m->last, NULL, m->param[WTE].value, NULL, 1.0, rows,
                       m->d);
}

static rlhf_lm_head head_of(const struct bigram *m, const rlhf_dist *dist, int entropy) {
    return (rlhf_lm_head){.size = sizeof(rlhf_lm_head),
                          .rows = m->rows,
                          .d = m->d,
                          .vocab = m->vocab,
                          .dtype = RLHF_F32,
                          .dist = dist,
                          .hidden = m->hidden,
                          .weight = m->packed,
                          .target = m->target,
                          .logp = m->logp,
                          .entropy = entropy ? m->entropy : NULL};
}

// Lists the response tokens, which are scored, and the token before each.
static rlhf_status list_rows(struct bigram *m, const rlhf_batch *b) {
    RLHF_TRY(room(m, b->total));
    m->rows = 0;
    for (uint32_t i = 0; i < b->n; i++)
        for (int32_t t = b->offset[i] + b->prompt_len[i]; t < b->offset[i + 1]; t++) {
            m->host_last[m->rows] = b->ids[t - 1];
            m->host_target[m->rows++] = b->ids[t];
        }
    return RLHF_OK;
}

// `rows` has one value per response token, `all` one element per token. Copies each value to the
// element of its token, and sets all other elements to 0.
static void spread(const rlhf_batch *b, const float *rows, float *all) {
    memset(all, 0, b->total * sizeof *all);
    for (uint32_t i = 0, r = 0; i < b->n; i++)
        for (int32_t t = b->offset[i] + b->prompt_len[i]; t < b->offset[i + 1]; t++)
            all[t] = rows[r++];
}

static void gather(const rlhf_batch *b, const float *all, float *rows) {
    for (uint32_t i = 0, r = 0; i < b->n; i++)
        for (int32_t t = b->offset[i] + b->prompt_len[i]; t < b->offset[i + 1]; t++)
            rows[r++] = all ? all[t] : 0;
}

static rlhf_status forward(void *self, const rlhf_batch *b, const rlhf_forward *f,
                           const rlhf_heads *out) {
    struct bigram *m = self;
    const uint32_t known = RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY;
    const int entropy = (f->heads & RLHF_HEAD_ENTROPY) != 0;
    if (f->heads & ~known || f->support || b->prefix) return refuse(m, "such head");
    if (f->flags & ~(uint32_t)RLHF_FORWARD_BASE) return refuse(m, "such flag of forward()");
    RLHF_TRY(list_rows(m, b));
    if (m->rows) {
        RLHF_TRY(embed(m, m->rows));
        RLHF_TRY(upload(m, m->target, m->host_target, m->rows));
        const rlhf_lm_head h = head_of(m, f->dist, entropy);
        RLHF_TRY(m->c->lm_head(m->c->ctx, &h));
        const uint64_t bytes = 4 * (uint64_t)m->rows;
        RLHF_TRY(m->c->download(m->c->ctx, m->host_out, m->logp, bytes));
        if (entropy) RLHF_TRY(m->c->download(m->c->ctx, m->host_out + m->cap, m->entropy, bytes));
    }
    if (out->logp) spread(b, m->host_out, out->logp);
    if (out->entropy && entropy) spread(b, m->host_out + m->cap, out->entropy);
    return RLHF_OK;
}

static rlhf_status backward(void *self, const rlhf_batch *b, const rlhf_forward *f,
                            const rlhf_heads *grad) {
    struct bigram *m = self;
    if (!m->trainable) return refuse(m, "gradients: it is not trained");
    if (!m->rows) return RLHF_OK;
    gather(b, grad->logp, m->host_out);
    gather(b, grad->entropy, m->host_out + m->cap);
    RLHF_TRY(upload(m, m->d_logp, m->host_out, m->rows));
    RLHF_TRY(upload(m, m->d_entropy, m->host_out + m->cap, m->rows));
    const int entropy = (f->heads & RLHF_HEAD_ENTROPY) != 0;
    rlhf_lm_head h = head_of(m, f->dist, entropy);
    h.d_logp = m->d_logp;
    h.d_entropy = entropy ? m->d_entropy : NULL;
    h.d_hidden = m->d_hidden;
    h.d_weight = m->param[HEAD].grad;
    RLHF_TRY(m->c->lm_head_bwd(m->c->ctx, &h));
    return m->c->embed_bwd(m->c->ctx, m->param[WTE].grad, NULL, m->d_hidden, m->last, NULL, 1.0,
                           m->rows, m->d, (int32_t)m->config->vocab_size, 0);
}

// ---- generation: slots are stateless ----

struct rlhf_gen {
    uint64_t *counter; // [n_slots]
};

static rlhf_status gen_open(void *self, uint32_t n_slots, uint32_t max_len, rlhf_gen **out) {
    struct bigram *m = self;
    (void)max_len;
    RLHF_TRY(room(m, n_slots));
    rlhf_gen *g = m->host->alloc(m->host, sizeof *g + n_slots * sizeof *g->counter);
    if (!g) return m->host->fail(m->host, RLHF_E_NOMEM, "out of memory");
    g->counter = (uint64_t *)(void *)(g + 1);
    *out = g;
    return RLHF_OK;
}

static void gen_close(void *self, rlhf_gen *g) {
    const struct bigram *m = self;
    m->host->free(m->host, g);
}

static rlhf_status gen_step(void *self, rlhf_gen *g, const rlhf_gen_step *s) {
    struct bigram *m = self;
    uint32_t rows = 0;
    if (s->support || s->prefix) return refuse(m, "prefixes and supports");
    RLHF_TRY(room(m, s->n));
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->silent && s->silent[i]) continue;
        m->host_last[rows] = s->ids[s->offset[i + 1] - 1];
        g->counter[rows++] = s->counter[i];
    }
    if (!rows) return RLHF_OK;
    RLHF_TRY(embed(m, rows));
    const rlhf_lm_sample draw = {.size = sizeof draw,
                                 .rows = rows,
                                 .d = m->d,
                                 .vocab = m->vocab,
                                 .dtype = RLHF_F32,
                                 .dist = s->dist,
                                 .logp_dist = s->logp_dist,
                                 .hidden = m->hidden,
                                 .weight = m->packed,
                                 .seed = s->seed,
                                 .stream = s->stream,
                                 .host_counter = g->counter,
                                 .host_id = m->host_target,
                                 .host_logp = m->host_out};
    RLHF_TRY(m->c->lm_sample(m->c->ctx, &draw));
    for (uint32_t i = 0, r = 0; i < s->n; i++) {
        if (s->silent && s->silent[i]) continue;
        s->next[i] = m->host_target[r];
        s->logp[i] = m->host_out[r++];
    }
    return RLHF_OK;
}

static const rlhf_opt options[] = {
    RLHF_OPT_I64(struct config, vocab_size, 50257, 2, 1 << 24, "number of token ids"),
    RLHF_OPT_I64(struct config, d_model, 64, 1, 1 << 15, "width of the embedding"),
    RLHF_OPT_I64(struct config, n_positions, 1024, 1, 1 << 20, "tokens that a row may have"),
};
static const rlhf_model_ops ops = {.size = sizeof ops,
                                   .compute_major = RLHF_COMPUTE_MAJOR,
                                   .compute_minor = RLHF_COMPUTE_MINOR,
                                   .open = open_model,
                                   .info = info,
                                   .param = param,
                                   .refresh = refresh,
                                   .forward = forward,
                                   .backward = backward,
                                   .gen_open = gen_open,
                                   .gen_step = gen_step,
                                   .gen_close = gen_close};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_MODEL,
    .id = "org.example.bigram",
    .version = "1.0.0",
    .summary = "a bigram language model",
    RLHF_OPTIONS(struct config, options),
    .create = create,
    .destroy = destroy,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
