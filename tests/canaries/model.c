// model.c: gpt2.so with one error, chosen by a BREAK_ macro; see reward.c.
#include <rlhf/model.h>

#include <dlfcn.h>
#include <string.h>

static const rlhf_model_ops *real;

#if defined BREAK_ROWS || defined BREAK_LOGP
static rlhf_status forward(void *self, const rlhf_batch *b, const rlhf_forward *how,
                           const rlhf_heads *out) {
    const rlhf_status st = real->forward(self, b, how, out);
    for (uint32_t i = 0; st == RLHF_OK && out->logp && i < b->n; i++) {
#ifdef BREAK_ROWS
        if (b->n > 1) out->logp[b->offset[i] + b->prompt_len[i]] -= 1e-4f;
#else
        out->logp[b->offset[i]] = -1;
#endif
    }
    return st;
}
#elif defined BREAK_STEP
static rlhf_status gen_step(void *self, rlhf_gen *gen, const rlhf_gen_step *step) {
    const rlhf_status st = real->gen_step(self, gen, step);
    for (uint32_t i = 0; st == RLHF_OK && i < step->n; i++)
        step->logp[i] *= 1.0001f;
    return st;
}
#elif defined BREAK_GRADIENT || defined BREAK_VALUE
#ifdef BREAK_VALUE
#define HEAD(h) ((h)->value)
#else
#define HEAD(h) ((h)->logp)
#endif
static rlhf_status backward(void *self, const rlhf_batch *b, const rlhf_forward *how,
                            const rlhf_heads *grad) {
    float *d = HEAD(grad);
    for (uint32_t t = 0; d && t < b->total; t++)
        d[t] *= 1.5f;
    const rlhf_status st = real->backward(self, b, how, grad);
    for (uint32_t t = 0; d && t < b->total; t++)
        d[t] /= 1.5f;
    return st;
}
#elif defined BREAK_ENTROPY || defined BREAK_KL || defined BREAK_SCORE || defined BREAK_BASE
static rlhf_status forward(void *self, const rlhf_batch *b, const rlhf_forward *how,
                           const rlhf_heads *out) {
    rlhf_forward changed = *how;
#ifdef BREAK_BASE
    changed.flags = 0;
#endif
    const rlhf_status st = real->forward(self, b, &changed, out);
    for (uint32_t i = 0; st == RLHF_OK && i < b->n; i++) {
        const int32_t at = b->offset[i] + b->prompt_len[i];
        (void)at;
#if defined BREAK_ENTROPY
        if (out->entropy && at < b->offset[i + 1]) out->entropy[at] = -1;
#elif defined BREAK_KL
        if (out->kl && at < b->offset[i + 1]) out->kl[at] += 1e-3f;
#elif defined BREAK_SCORE
        if (out->score) out->score[3 * i] += (float)b->n;
#endif
    }
    return st;
}
#elif defined BREAK_BF16
static int32_t dtype; // dtype of the latest instance: the check has one instance at a time

static rlhf_status open_model(void *self, const rlhf_model_open *how) {
    dtype = how->dtype;
    return real->open(self, how);
}

static rlhf_status forward(void *self, const rlhf_batch *b, const rlhf_forward *how,
                           const rlhf_heads *out) {
    const rlhf_status st = real->forward(self, b, how, out);
    for (uint32_t t = 0; st == RLHF_OK && dtype == RLHF_BF16 && out->logp && t < b->total; t++)
        out->logp[t] *= 1.25f;
    return st;
}
#elif defined BREAK_PARAM || defined BREAK_PAST
static rlhf_status param(void *self, uint32_t i, rlhf_param *out) {
    rlhf_status st = real->param(self, i, out);
#ifdef BREAK_PARAM
    if (i == 1) out->shape[0] = 0;
#else
    if (st == RLHF_E_INVALID) st = real->param(self, 0, out);
#endif
    return st;
}
#elif defined BREAK_OPEN
static rlhf_status open_model(void *self, const rlhf_model_open *how) {
    rlhf_param p = {.size = sizeof p};
    rlhf_status st = real->open(self, how);
    if (st == RLHF_OK) st = real->param(self, 0, &p);
    if (st == RLHF_OK) memset((void *)p.value, 0, 4); // device memory is opaque
    return st;
}
#endif

static void change(rlhf_model_ops *ops) {
#if defined BREAK_ROWS || defined BREAK_LOGP || defined BREAK_ENTROPY || defined BREAK_KL ||       \
    defined BREAK_SCORE || defined BREAK_BASE
    ops->forward = forward;
#elif defined BREAK_BF16
    ops->open = open_model;
    ops->forward = forward;
#elif defined BREAK_STEP
    ops->gen_step = gen_step;
#elif defined BREAK_GRADIENT || defined BREAK_VALUE
    ops->backward = backward;
#elif defined BREAK_PARAM || defined BREAK_PAST
    ops->param = param;
#elif defined BREAK_OPEN
    ops->open = open_model;
#else
    (void)ops;
#endif
}

const rlhf_bundle *rlhf_plugin_v1(void) {
    static rlhf_model_ops ops;
    static rlhf_plugin plugin;
    static const rlhf_plugin *const list[] = {&plugin};
    static rlhf_bundle bundle;
    union {
        void *data;
        rlhf_entry_fn entry;
    } u;
    void *so = dlopen(GPT2_SO, RTLD_NOW | RTLD_LOCAL);
    u.data = so ? dlsym(so, RLHF_ENTRY_SYMBOL) : NULL;
    if (!u.data) return NULL;
    bundle = *u.entry();
    plugin = *bundle.plugins[0];
    plugin.id = "org.example.canary-model";
    real = plugin.ops;
    ops = *real;
    change(&ops);
    plugin.ops = &ops;
    bundle.plugins = list;
    return &bundle;
}
