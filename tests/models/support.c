// tests/models/support.c: see support.h.
#include "support.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct setting tiny_gpt2[] = {{"vocab_size", "61"}, {"n_positions", "24"}, {"n_embd", "32"},
                                    {"n_layer", "2"},     {"n_head", "2"},       {"n_inner", "64"},
                                    {NULL, NULL}};

const struct setting tiny_post_norm[] = {{"vocab_size", "61"}, {"max_position_embeddings", "24"},
                                         {"dim", "32"},        {"n_layers", "3"},
                                         {"n_heads", "2"},     {"hidden_dim", "64"},
                                         {NULL, NULL}};

// ---- fake host ----

static char failure[1024];

const char *host_failure(void) { return failure; }
void host_failure_clear(void) { failure[0] = 0; }

static void fake_log(const rlhf_host *h, int32_t level, const char *msg) {
    (void)h;
    if (level >= RLHF_LOG_WARN) fprintf(stderr, "log: %s\n", msg);
}

static rlhf_status fake_fail(const rlhf_host *h, rlhf_status code, const char *msg) {
    (void)h;
    snprintf(failure, sizeof failure, "%s", msg);
    return code;
}

static int64_t alloc_left = -1, blocks;
static int32_t alloc_forever;

void host_alloc_fail(int64_t left, int32_t forever) {
    alloc_left = left;
    alloc_forever = forever;
}

int64_t host_blocks(void) { return blocks; }

static void *fake_alloc(const rlhf_host *h, uint64_t bytes) {
    (void)h;
    if (!bytes) return NULL;
    if (alloc_left == 0) {
        if (!alloc_forever) alloc_left = -1;
        return NULL;
    }
    if (alloc_left > 0) alloc_left--;
    blocks++;
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    return p ? memset(p, 0, bytes) : NULL;
}

static void fake_free(const rlhf_host *h, void *p) {
    (void)h;
    if (p) blocks--;
    free(p);
}

static void fake_metric(const rlhf_host *h, const char *name, double v, double weight,
                        int32_t combine) {
    (void)h;
    (void)name;
    (void)v;
    (void)weight;
    (void)combine;
}

static void fake_rng(const rlhf_host *h, const char *stream, rlhf_rng *out) {
    (void)h;
    out->seed = 1;
    out->stream = rlhf_rng_stream(stream);
    out->counter = 0;
}

static int32_t fake_cancelled(const rlhf_host *h) {
    (void)h;
    return 0;
}

static const void *fake_service(const rlhf_host *h, const char *id) {
    (void)h;
    (void)id;
    return NULL;
}

const rlhf_host *fake_host(void) {
    static const rlhf_host host = {.size = sizeof host,
                                   .abi_minor = RLHF_ABI_MINOR,
                                   .name = "test",
                                   .version = "0",
                                   .log = fake_log,
                                   .fail = fake_fail,
                                   .alloc = fake_alloc,
                                   .free = fake_free,
                                   .metric = fake_metric,
                                   .rng = fake_rng,
                                   .cancelled = fake_cancelled,
                                   .service = fake_service};
    return &host;
}

// ---- loading ----

static void so_path(char *path, size_t cap, const char *kind, const char *prefix,
                    const char *name) {
    const char *dir = getenv("RLHF_BUILD_DIR");
    if (strcmp(name, "cuda_emu") == 0)
        snprintf(path, cap, "%s/tests/cuda/kernels_cuda_emu.so", dir ? dir : ".");
    else if (strcmp(name, "outside_family") == 0)
        snprintf(path, cap, "%s/tests/models/outside_family.so", dir ? dir : ".");
    else
        snprintf(path, cap, "%s/lib/rlhf/1/%s/%s%s.so", dir ? dir : ".", kind, prefix, name);
}

static void *open_so(const char *kind, const char *prefix, const char *name) {
    char path[1024];
    so_path(path, sizeof path, kind, prefix, name);
    void *dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!dl) fprintf(stderr, "%s\n", dlerror());
    return dl;
}

// dlsym returns an object pointer; ISO C cannot cast it to a function pointer.
static void symbol(void *dl, const char *name, void *fn_out) {
    void *p = dlsym(dl, name);
    assert_non_null(p);
    memcpy(fn_out, &p, sizeof p);
}

struct backend backend_of(const char *path, uint32_t threads, uint32_t guard) {
    struct backend b = {rlhf_test_backend_load(path), NULL, NULL, NULL};
    if (!b.plugin) return b;
    b.config = malloc(b.plugin->config_size + 1);
    assert_non_null(b.config);
    rlhf_test_config(b.plugin, b.config);
    const rlhf_kernels_ops *ops = b.plugin->ops;
    const rlhf_kernels_open o = {.size = sizeof o, .threads = threads, .guard = guard};
    if (b.plugin->create(fake_host(), b.config, &b.self) < 0 ||
        ops->open(b.self, &o, &b.compute) < 0)
        fail_msg("backend %s: %s", path, failure);
    return b;
}

struct backend backend_open(const char *name, uint32_t threads, uint32_t guard) {
    char path[1024];
    const char *other = getenv("RLHF_TEST_BACKEND");
    if (other && strcmp(name, "cpu") == 0) name = other;
    so_path(path, sizeof path, "kernels", "kernels_", name);
    return backend_of(path, threads, guard);
}

int plugin_fits(const rlhf_compute *c, const char *plugin) {
    const int needs = !strcmp(plugin, "lfm2") || !strcmp(plugin, "qwen3_5_text");
    return !needs || strncmp(c->name, "cuda", 4) != 0 || RLHF_COMPUTE_HAS(c, multiply_bwd);
}

int backend_is_slow(void) {
    const char *other = getenv("RLHF_TEST_BACKEND");
    return other && strcmp(other, "cuda_emu") == 0;
}

void backend_close(struct backend *b) {
    if (!b->plugin) return;
    ((const rlhf_kernels_ops *)b->plugin->ops)->close(b->self, b->compute);
    b->plugin->destroy(b->self);
    free(b->config);
    memset(b, 0, sizeof *b);
}

// The numbers of "1,0", until the next call.
static rlhf_i64_list numbers(const char *text) {
    static int64_t items[64];
    rlhf_i64_list list = {items, 0};
    char *end;
    for (; text && *text && list.len < 64; text = *end ? end + 1 : end)
        items[list.len++] = strtoll(text, &end, 10);
    return list;
}

// The numbers of "1.5,2", until the fourth call with a text.
static rlhf_f64_list reals(const char *text) {
    static double items[4][64];
    static uint32_t calls;
    double *to = items[text ? calls++ % 4 : 0];
    rlhf_f64_list list = {to, 0};
    char *end;
    for (; text && *text && list.len < 64; text = *end ? end + 1 : end)
        to[list.len++] = strtod(text, &end);
    return list;
}

// The words of "a,b", ended by NULL, until the next call.
static const char *const *strings(const char *text) {
    static char copy[256];
    static const char *items[9];
    size_t n = 0;
    snprintf(copy, sizeof copy, "%s", text ? text : "");
    for (char *at = copy; *at && n < 8; n++) {
        items[n] = at;
        at += strcspn(at, ",");
        if (*at) *at++ = 0;
    }
    items[n] = NULL;
    return items;
}

static void set_field(void *config, const rlhf_opt *o, const char *text) {
    char *at = (char *)config + o->offset;
    int32_t i32 = text ? atoi(text) : (int32_t)o->i_def;
    int64_t i64 = text ? atoll(text) : o->i_def;
    double f64 = text ? atof(text) : o->f_def;
    const char *s = text ? text : o->s_def;
    rlhf_i64_list list;
    rlhf_f64_list factors;
    const char *const *words;
    if (o->type == RLHF_T_ENUM && text)
        for (i32 = 0; o->choices[i32] && strcmp(o->choices[i32], text) != 0;)
            i32++;
    switch (o->type) {
    case RLHF_T_BOOL:
    case RLHF_T_ENUM:
        memcpy(at, &i32, sizeof i32);
        break;
    case RLHF_T_I64:
        memcpy(at, &i64, sizeof i64);
        break;
    case RLHF_T_F64:
        memcpy(at, &f64, sizeof f64);
        break;
    case RLHF_T_LIST:
        words = strings(text);
        memcpy(at, &words, sizeof words);
        break;
    case RLHF_T_I64_LIST: // one such option in a test
        list = numbers(text);
        memcpy(at, &list, sizeof list);
        break;
    case RLHF_T_F64_LIST:
        factors = reals(text);
        memcpy(at, &factors, sizeof factors);
        break;
    default:
        memcpy(at, &s, sizeof s);
        break;
    }
}

rlhf_status model_create(const char *plugin, const struct setting *settings, struct model *out) {
    rlhf_entry_fn entry;
    memset(out, 0, sizeof *out);
    host_failure_clear();
    out->dl = open_so("models", "", plugin);
    assert_non_null(out->dl);
    symbol(out->dl, RLHF_ENTRY_SYMBOL, &entry);
    out->plugin = entry()->plugins[0];
    out->ops = out->plugin->ops;
    out->config = calloc(1, out->plugin->config_size);
    rlhf_opt o;
    for (uint32_t i = 0;
         rlhf_opt_at(out->plugin->opts, out->plugin->n_opts, out->plugin->opt_stride, i, &o); i++) {
        // The host opens the file that has the name of a model_type.
        const char *text = !strcmp(o.key, "model_type") ? plugin : NULL;
        for (const struct setting *s = settings; s->key; s++)
            if (!strcmp(s->key, o.key)) text = s->text;
        set_field(out->config, &o, text);
    }
    return out->plugin->create(fake_host(), out->config, &out->self);
}

struct model model_open(const char *plugin, const struct setting *settings,
                        const rlhf_model_open *open) {
    struct model m;
    must(&m, model_create(plugin, settings, &m));
    m.c = open->compute;
    must(&m, m.ops->open(m.self, open));
    m.info.size = sizeof m.info;
    must(&m, m.ops->info(m.self, &m.info));
    return m;
}

void model_close(struct model *m) {
    if (m->plugin) m->plugin->destroy(m->self);
    free(m->config);
    memset(m, 0, sizeof *m);
}

rlhf_model_open open_args(const struct backend *b, int32_t dtype, int32_t trainable) {
    rlhf_model_open o = {0};
    o.size = sizeof o;
    o.dtype = dtype;
    o.trainable = trainable;
    o.compute = b->compute;
    return o;
}

// ---- parameters ----

uint64_t param_count(const rlhf_param *p) {
    uint64_t n = 1;
    for (int32_t i = 0; i < p->ndim; i++)
        n *= (uint64_t)p->shape[i];
    return n;
}

void device_write(const rlhf_compute *c, rlhf_dev dst, const float *src, uint64_t n) {
    assert_int_equal(c->upload(c->ctx, dst, src, n * sizeof *src), RLHF_OK);
}

float *device_read(const rlhf_compute *c, rlhf_dev src, uint64_t n) {
    float *out = test_malloc(n * sizeof *out + 1);
    assert_int_equal(c->download(c->ctx, out, src, n * sizeof *out), RLHF_OK);
    return out;
}

void model_write(struct model *m, uint32_t i, const float *x) {
    rlhf_param p = {.size = sizeof p};
    must(m, m->ops->param(m->self, i, &p));
    rlhf_dev to = p.value;
    if (!p.value) must(m, m->ops->fill_begin(m->self, i, &to));
    device_write(m->c, to, x, param_count(&p));
    if (!p.value) must(m, m->ops->fill_end(m->self, i));
}

rlhf_status model_pass(struct model *m) {
    rlhf_param p = {.size = sizeof p};
    rlhf_dev to;
    for (uint32_t i = 0; m->ops->param(m->self, i, &p) == RLHF_OK; i++) {
        if (p.value) continue;
        RLHF_TRY(m->ops->fill_begin(m->self, i, &to));
        RLHF_TRY(m->ops->fill_end(m->self, i));
    }
    return RLHF_OK;
}

void model_fill(struct model *m, double scale) {
    rlhf_param p = {.size = sizeof p};
    for (uint32_t i = 0; m->ops->param(m->self, i, &p) == RLHF_OK; i++) {
        const uint64_t n = param_count(&p);
        const float base = p.init == RLHF_INIT_ONE ? 1 : 0;
        float *x = test_malloc((n + 4) * sizeof *x);
        rlhf_rng r = {7, rlhf_rng_stream(p.name), 0};
        for (uint64_t j = 0; j < n; j += 4, r.counter++) {
            uint32_t w[4];
            rlhf_rng_block(&r, w);
            for (uint64_t k = 0; k < 4; k++)
                x[j + k] = base + (2 * rlhf_rng_f32(w[k]) - 1) * (float)scale;
        }
        model_write(m, i, x);
        test_free(x);
    }
    must(m, m->ops->refresh(m->self));
}

void model_zero_grad(struct model *m) {
    rlhf_param p = {.size = sizeof p};
    for (uint32_t i = 0; m->ops->param(m->self, i, &p) == RLHF_OK; i++)
        must(m, m->c->zero(m->c->ctx, p.grad, param_count(&p) * sizeof(float)));
}

uint32_t model_find(struct model *m, const char *name) {
    rlhf_param p = {.size = sizeof p};
    for (uint32_t i = 0; m->ops->param(m->self, i, &p) == RLHF_OK; i++)
        if (!strcmp(p.name, name)) return i;
    fail_msg("the model has no parameter %s", name);
    return 0;
}

// ---- checks ----

void must_at(const struct model *m, rlhf_status st, const char *what, const char *file, int line) {
    if (st >= 0) return;
    (void)m;
    print_error("%s: %d, \"%s\"\n", what, st, failure);
    _assert_true(0, what, file, line);
}

void tensor_close_at(const float *got, const float *want, uint64_t n, double rtol, double atol,
                     const char *label, const char *file, int line) {
    double top = 0, worst = 0;
    int shown = 0;
    for (uint64_t i = 0; i < n; i++)
        top = fmax(top, fabs((double)want[i]));
    for (uint64_t i = 0; i < n; i++) {
        const double diff = fabs((double)got[i] - (double)want[i]);
        if (diff <= rtol * top + atol) { // false for NaN
            worst = fmax(worst, diff);
            continue;
        }
        if (shown++ < 5)
            print_error("%s[%llu] = %.9g, expected %.9g\n", label, (unsigned long long)i,
                        (double)got[i], (double)want[i]);
    }
    if (getenv("RLHF_TEST_VERBOSE"))
        print_message("%-48s max %.3g, worst difference %.3g\n", label, top, worst);
    if (shown) _assert_true(0, label, file, line);
}

void draw_three(struct model *m, int32_t next[3], float logp[3]) {
    rlhf_gen *g = NULL;
    const rlhf_dist dist = RLHF_DIST_WHOLE;
    int32_t slot = 0, start = 0, id = 5, offset[] = {0, 1};
    must(m, m->ops->gen_open(m->self, 1, 8, &g));
    for (uint64_t i = 0; i < 3; i++, start++) {
        const rlhf_gen_step s = {.size = sizeof s,
                                 .n = 1,
                                 .slot = &slot,
                                 .start = &start,
                                 .ids = &id,
                                 .offset = offset,
                                 .dist = &dist,
                                 .logp_dist = &dist,
                                 .seed = 3,
                                 .counter = &i,
                                 .next = &next[i],
                                 .logp = &logp[i]};
        must(m, m->ops->gen_step(m->self, g, &s));
        id = next[i];
    }
    m->ops->gen_close(m->self, g);
}
