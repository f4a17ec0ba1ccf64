// model.c: a model with random weights, GPT-2 124M unless --model and --set say otherwise: a
// training step of 16 rows x 64 tokens and decoding of 32 rows, through the plugin as the host
// drives it.
#include "bench.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 6, WARMUP = 2, TENSORS = 2048 };

// ---- the host table a model needs ----

static void host_log(const rlhf_host *h, int32_t level, const char *msg) {
    (void)h;
    if (level >= RLHF_LOG_WARN) fprintf(stderr, "%s\n", msg);
}

static rlhf_status host_fail(const rlhf_host *h, rlhf_status code, const char *msg) {
    (void)h;
    fprintf(stderr, "rlhf-bench: the model plugin says: %s\n", msg);
    return code;
}

static void *host_alloc(const rlhf_host *h, uint64_t bytes) {
    (void)h;
    uint64_t n = (bytes + 63) / 64 * 64;
    void *p = n ? aligned_alloc(64, n) : NULL;
    if (p) memset(p, 0, n);
    return p;
}

static void host_free(const rlhf_host *h, void *p) {
    (void)h;
    free(p);
}

static void host_metric(const rlhf_host *h, const char *name, double value) {
    (void)h;
    (void)name;
    (void)value;
}

static void host_rng(const rlhf_host *h, const char *stream, rlhf_rng *out) {
    (void)h;
    *out = (rlhf_rng){1, rlhf_rng_stream(stream), 0};
}

static int32_t host_cancelled(const rlhf_host *h) {
    (void)h;
    return 0;
}

static const void *host_service(const rlhf_host *h, const char *id) {
    (void)h;
    (void)id;
    return NULL;
}

static const rlhf_host bench_host = {.size = sizeof(rlhf_host),
                                     .abi_minor = RLHF_ABI_MINOR,
                                     .name = "rlhf-bench",
                                     .version = RLHF_SDK_VERSION,
                                     .log = host_log,
                                     .fail = host_fail,
                                     .alloc = host_alloc,
                                     .free = host_free,
                                     .metric = host_metric,
                                     .rng = host_rng,
                                     .cancelled = host_cancelled,
                                     .service = host_service};

// ---- the model ----

struct model {
    const rlhf_plugin *plugin;
    const rlhf_model_ops *ops;
    void *config, *self;
    rlhf_model_info info;
    int64_t position_params; // not part of any product
};

// The option's default, or what --set says.
static int64_t integer_of(const struct bench *b, const rlhf_opt *o) {
    const size_t n = strlen(o->key);
    for (char *const *s = b->set; *s; s++)
        if (strncmp(*s, o->key, n) == 0 && (*s)[n] == '=') return strtoll(*s + n + 1, NULL, 10);
    return o->i_def;
}

// The defaults of gpt2.so's option table are GPT-2 124M; other plugins need sizes from --set.
static void *config_of(const struct bench *b, const rlhf_plugin *p) {
    char *config = calloc(1, p->config_size);
    rlhf_opt o;
    if (!config) bench_die("out of memory");
    for (uint32_t i = 0; rlhf_opt_at(p->opts, p->n_opts, p->opt_stride, i, &o); i++) {
        void *at = config + o.offset;
        const int64_t number = integer_of(b, &o);
        const int32_t small = (int32_t)number;
        if ((o.flags & RLHF_OPT_REQUIRED) && number < o.i_min)
            bench_die("%s.so needs --set %s=...", b->model, o.key);
        if (o.type == RLHF_T_I64) memcpy(at, &number, sizeof number);
        if (o.type == RLHF_T_F64) memcpy(at, &o.f_def, sizeof o.f_def);
        if (o.type == RLHF_T_STR || o.type == RLHF_T_PATH) memcpy(at, &o.s_def, sizeof o.s_def);
        if (o.type == RLHF_T_BOOL || o.type == RLHF_T_ENUM) memcpy(at, &small, sizeof small);
    }
    return config;
}

static void must(const struct bench *b, rlhf_status st, const char *what) {
    if (st < 0) bench_die("%s failed (%d); backend: %s", what, st, b->c->last_error(b->c->ctx));
}

// Matrices N(0, 0.02)-like, norms 1, biases 0: what a fresh model has.
static void fill_params(const struct bench *b, struct model *m) {
    rlhf_param p = {.size = sizeof p};
    for (uint32_t i = 0; m->ops->param(m->self, i, &p) == RLHF_OK; i++) {
        uint64_t n = 1;
        for (int32_t k = 0; k < p.ndim; k++)
            n *= (uint64_t)p.shape[k];
        if (strstr(p.name, "wpe")) m->position_params = (int64_t)n;
        if (p.init == RLHF_INIT_ZERO) continue;
        rlhf_dev r = bench_random(b, n, RLHF_F32);
        must(b, b->c->copy(b->c->ctx, p.value, r, n * 4), "copy");
        if (p.init == RLHF_INIT_ONE) {
            const float one = 1.0f;
            for (uint64_t k = 0; k < n; k++)
                must(b, b->c->upload(b->c->ctx, rlhf_dev_at(p.value, k * 4), &one, 4), "upload");
        }
        b->c->release(b->c->ctx, r);
    }
}

static struct model model_open(const struct bench *b) {
    struct model m = {0};
    char path[4200];
    snprintf(path, sizeof path, "%s/models/%s.so", b->lib_dir, b->model);
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib) bench_die("%s", dlerror());
    rlhf_entry_fn entry;
    *(void **)&entry = dlsym(lib, RLHF_ENTRY_SYMBOL);
    if (!entry) bench_die("%s exports no %s", path, RLHF_ENTRY_SYMBOL);
    m.plugin = entry()->plugins[0];
    m.ops = m.plugin->ops;
    m.config = config_of(b, m.plugin);
    must(b, m.plugin->create(&bench_host, m.config, &m.self), "create");
    const char *const all[] = {"all-linear"};
    const rlhf_adapter adapter = {
        .size = sizeof adapter, .rank = b->rank, .scale = 2, .target = all, .n_targets = 1};
    const rlhf_model_open open = {.size = sizeof open,
                                  .dtype = b->dtype,
                                  .trainable = 1,
                                  .compute = b->c,
                                  .adapter = b->rank ? &adapter : NULL};
    must(b, m.ops->open(m.self, &open), "open");
    m.info.size = sizeof m.info;
    must(b, m.ops->info(m.self, &m.info), "info");
    fill_params(b, &m);
    must(b, m.ops->refresh(m.self), "refresh");
    return m;
}

static void *numbers(size_t n) { // n zeroed 32-bit numbers
    void *p = calloc(n, 4);
    if (!p) bench_die("out of memory");
    return p;
}

// ---- training step ----

struct moments {
    rlhf_dev m, v;
};

struct times {
    double forward, backward, clip, update, refresh, total;
};

// Sum of squares of all gradients; then AdamW on every tensor, and gradients back to zero.
static void optimise(const struct bench *b, const struct model *m, struct moments *mom,
                     int64_t step, struct times *t) {
    const rlhf_compute *c = b->c;
    rlhf_param p = {.size = sizeof p};
    double norm = 0, part = 0, t0 = bench_now(b);
    uint64_t n[TENSORS];
    for (uint32_t i = 0; m->ops->param(m->self, i, &p) == RLHF_OK && i < TENSORS; i++) {
        if (!p.grad) continue;
        n[i] = 1;
        for (int32_t k = 0; k < p.ndim; k++)
            n[i] *= (uint64_t)p.shape[k];
        must(b, c->sumsq(c->ctx, p.grad, n[i], &part), "sumsq");
        norm += part;
    }
    double t1 = bench_now(b);
    const rlhf_adamw a = {sizeof(rlhf_adamw),   0,   1e-5, 0.9, 0.999, 1e-8, 0.01,
                          norm > 1 ? 0.5 : 1.0, step};
    for (uint32_t i = 0; m->ops->param(m->self, i, &p) == RLHF_OK && i < TENSORS; i++) {
        if (!p.grad) continue;
        if (!mom[i].m) {
            must(b, c->alloc(c->ctx, n[i] * 4, &mom[i].m), "alloc");
            must(b, c->alloc(c->ctx, n[i] * 4, &mom[i].v), "alloc");
        }
        must(b, c->adamw(c->ctx, p.value, p.grad, mom[i].m, mom[i].v, n[i], &a), "adamw");
        must(b, c->zero(c->ctx, p.grad, n[i] * 4), "zero");
    }
    double t2 = bench_now(b);
    must(b, m->ops->refresh(m->self), "refresh");
    t->clip = t1 - t0;
    t->update = t2 - t1;
    t->refresh = bench_now(b) - t2;
}

static struct times train_step(const struct bench *b, const struct model *m, struct moments *mom,
                               int64_t step) {
    const int total = b->rows * b->len;
    int32_t *ids = numbers(3 * (size_t)total + 1), *offset = ids + total,
            *prompt = offset + b->rows + 1;
    float *logp = numbers(2 * (size_t)total), *grad = logp + total;
    for (int i = 0; i < total; i++) {
        ids[i] = (i * 7919 + 13) % m->info.n_vocab;
        grad[i] = -1.0f / (float)total;
    }
    for (int i = 0; i <= b->rows; i++)
        offset[i] = i * b->len;
    for (int i = 0; i < b->rows; i++)
        prompt[i] = 1;
    const rlhf_dist dist = RLHF_DIST_WHOLE;
    const rlhf_batch batch = {
        sizeof(rlhf_batch), (uint32_t)b->rows, (uint32_t)total, 0, ids, offset, prompt, NULL};
    const rlhf_forward fwd = {
        .size = sizeof fwd, .heads = RLHF_HEAD_LOGP, .train = 1, .dist = &dist};
    const rlhf_heads out = {.size = sizeof out, .logp = logp}, d = {.size = sizeof d, .logp = grad};
    struct times t = {0};
    const double t0 = bench_now(b);
    must(b, m->ops->forward(m->self, &batch, &fwd, &out), "forward");
    const double t1 = bench_now(b);
    must(b, m->ops->backward(m->self, &batch, &fwd, &d), "backward");
    t.forward = t1 - t0;
    t.backward = bench_now(b) - t1;
    optimise(b, m, mom, step, &t);
    t.total = bench_now(b) - t0;
    free(ids);
    free(logp);
    return t;
}

// Multiply-adds * 2: 6 a parameter and token (the tied head: of scored tokens), 4 where it is
// frozen behind an adapter (whose own are not counted), and the scores and weighted sums of causal
// attention, three times (forward, and backward twice). Nothing for recomputation, norms or
// activations.
static double train_flops(const struct bench *b, const struct model *m) {
    const double head = (double)m->info.n_vocab * m->info.d_model;
    const double trunk = (double)(m->info.n_params - m->position_params) - head;
    const double pairs = (double)b->len * (b->len + 1) / 2;
    const double each = b->rank ? 4.0 : 6.0;
    return each * trunk * b->rows * b->len + each * head * b->rows * (b->len - 1) +
           3.0 * 4.0 * pairs * m->info.d_model * b->rows * m->info.n_layer;
}

static double peak(const struct bench *b) {
    return b->dtype == RLHF_BF16 ? b->peak_bf16 : b->peak_f32;
}

static void bench_train(const struct bench *b, const struct model *m) {
    static struct moments mom[TENSORS];
    struct times best = {.total = 1e30};
    for (int i = 0; i < (b->count ? b->count : WARMUP + STEPS); i++) {
        struct times t = train_step(b, m, mom, i + 1);
        if (i >= WARMUP && t.total < best.total) best = t;
    }
    if (b->count) return;
    const double rate = train_flops(b, m) / best.total * 1e-9;
    char title[64];
    snprintf(title, sizeof title, "training step, %d x %d tokens", b->rows, b->len);
    printf("%-44s %10.1f ms, %.0f tokens/s, %.0f GFLOP/s, %.1f %% of peak\n", title,
           best.total * 1e3, b->rows * b->len / best.total, rate, 100 * rate / peak(b));
    printf("%-44s %10.1f forward, %.1f backward, %.1f norm, %.1f AdamW, %.1f packing (ms)\n", "",
           best.forward * 1e3, best.backward * 1e3, best.clip * 1e3, best.update * 1e3,
           best.refresh * 1e3);
}

// ---- decoding ----

// Prefill of all rows (step 0) or one decode step.
static void decode_step(const struct bench *b, const struct model *m, rlhf_gen *gen, int step,
                        int32_t *next) {
    const int n = b->slots, new_tokens = step ? 1 : b->prompt;
    int32_t *ids = numbers((size_t)n * (size_t)(b->prompt + 5) + 1), *offset = ids + n * b->prompt;
    int32_t *slot = offset + n + 1, *start = slot + n;
    float *logp = numbers((size_t)n);
    uint64_t *counter = numbers(2 * (size_t)n);
    for (int i = 0; i < n; i++) {
        slot[i] = i;
        start[i] = step ? b->prompt + step - 1 : 0;
        offset[i + 1] = (i + 1) * new_tokens;
        counter[i] = (uint64_t)(step * n + i);
        for (int k = 0; k < new_tokens; k++)
            ids[i * new_tokens + k] = step ? next[i] : (i * 131 + k * 17) % m->info.n_vocab;
    }
    const rlhf_dist dist = RLHF_DIST_WHOLE;
    const rlhf_gen_step s = {.size = sizeof s,
                             .n = (uint32_t)n,
                             .slot = slot,
                             .start = start,
                             .ids = ids,
                             .offset = offset,
                             .dist = &dist,
                             .logp_dist = &dist,
                             .seed = 1,
                             .stream = 2,
                             .counter = counter,
                             .next = next,
                             .logp = logp};
    must(b, m->ops->gen_step(m->self, gen, &s), "gen_step");
    free(ids);
    free(logp);
    free(counter);
}

// Every step of the generation is timed on its own and its best of some generations counts, so that
// a machine that others use for moments does not spoil a whole generation.
static void bench_decode(const struct bench *b, const struct model *m) {
    enum { GENERATIONS = 6 };
    int32_t *next = numbers((size_t)b->slots);
    double *at = calloc((size_t)b->fresh, sizeof *at), sum = 0;
    rlhf_gen *gen = NULL;
    if (!at) bench_die("out of memory");
    must(b, m->ops->gen_open(m->self, (uint32_t)b->slots, (uint32_t)(b->prompt + b->fresh), &gen),
         "gen_open");
    for (int r = 0; r < (b->count ? b->count : GENERATIONS); r++)
        for (int i = 0; i < b->fresh; i++) {
            double t = bench_now(b);
            decode_step(b, m, gen, i, next);
            t = bench_now(b) - t;
            if (r == 0 || t < at[i]) at[i] = t;
        }
    m->ops->gen_close(m->self, gen);
    for (int i = 1; i < b->fresh; i++)
        sum += at[i];
    const double best = sum / (b->fresh - 1), best_prefill = at[0];
    free(next);
    free(at);
    if (b->count) return;
    const double params = (double)(m->info.n_params - m->position_params);
    const double keys = b->prompt + b->fresh / 2.0;
    const double work = b->slots * (2.0 * params + 4.0 * keys * m->info.d_model * m->info.n_layer);
    const double rate = work / best * 1e-9;
    char title[64];
    snprintf(title, sizeof title, "decode, %d rows, %d + %d tokens", b->slots, b->prompt, b->fresh);
    printf("%-44s %10.2f ms a step, %.0f tokens/s, %.0f GFLOP/s, %.1f %% of peak\n", title,
           best * 1e3, b->slots / best, rate, 100 * rate / peak(b));
    printf("%-44s %10.2f ms\n", "prefill of the prompts", best_prefill * 1e3);
}

void bench_model(const struct bench *b, enum bench_part part) {
    struct model m = model_open(b);
    char with[48] = "";
    if (b->rank) snprintf(with, sizeof with, ", adapters of rank %d", b->rank);
    printf("%s, %.1f M parameters, random weights, %s%s\n", b->model,
           (double)m.info.n_params * 1e-6, b->dtype == RLHF_BF16 ? "bf16" : "f32", with);
    if (part != BENCH_DECODE) bench_train(b, &m);
    if (part != BENCH_TRAIN) bench_decode(b, &m);
    m.plugin->destroy(m.self);
    free(m.config);
}
