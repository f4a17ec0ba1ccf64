// model.c: see model.h. Opens a model's plugin as the host does.
#include "model.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- the host table for a model ----

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

static void host_metric(const rlhf_host *h, const char *name, double value, double weight,
                        int32_t combine) {
    (void)weight;
    (void)combine;
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

enum { MAX_ITEMS = 64 };

// Returns the value that --set gives to the option: a number or, of an enum, one of its names.
// Without --set, returns the option's default.
static int64_t integer_of(const struct bench *b, const rlhf_opt *o) {
    const size_t n = strlen(o->key);
    for (char *const *s = b->set; *s; s++) {
        if (strncmp(*s, o->key, n) != 0 || (*s)[n] != '=') continue;
        const char *text = *s + n + 1;
        for (int i = 0; o->type == RLHF_T_ENUM && o->choices[i]; i++)
            if (strcmp(o->choices[i], text) == 0) return i;
        return strtoll(text, NULL, 10);
    }
    return o->i_def;
}

// Sets the list that --set gives to the option, as in 2,5,8. `items` has space for MAX_ITEMS.
static rlhf_i64_list items_of(const struct bench *b, const rlhf_opt *o, int64_t *items) {
    rlhf_i64_list list = {0};
    const size_t n = strlen(o->key);
    for (char *const *s = b->set; *s; s++) {
        if (strncmp(*s, o->key, n) != 0 || (*s)[n] != '=') continue;
        list.ptr = items;
        for (char *at = *s + n; *at && list.len < MAX_ITEMS;)
            items[list.len++] = strtoll(at + 1, &at, 10);
    }
    return list;
}

// Returns a config. The defaults in gpt2.so's option table are the sizes of GPT-2 124M. Other
// plugins need sizes from --set. Lists of strings are empty; only one list of numbers may be given.
static void *config_of(const struct bench *b, const rlhf_plugin *p) {
    static const char *const no_items[] = {NULL};
    const char *const *const list = no_items;
    const size_t end = (p->config_size + 7) / 8 * 8;
    char *config = calloc(1, end + MAX_ITEMS * sizeof(int64_t));
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
        if (o.type == RLHF_T_LIST) memcpy(at, &list, sizeof list);
        if (o.type == RLHF_T_I64_LIST) {
            const rlhf_i64_list numbers = items_of(b, &o, (int64_t *)(void *)(config + end));
            memcpy(at, &numbers, sizeof numbers);
        }
        if (o.type == RLHF_T_BOOL || o.type == RLHF_T_ENUM) memcpy(at, &small, sizeof small);
    }
    return config;
}

// Fill the parameters as in an untrained model: matrices roughly N(0, 0.02), norms 1, biases 0.
static void fill_params(const struct bench *b, struct model *m) {
    rlhf_param p = {.size = sizeof p};
    for (uint32_t i = 0; m->ops->param(m->self, i, &p) == RLHF_OK; i++) {
        uint64_t n = 1;
        for (int32_t k = 0; k < p.ndim; k++)
            n *= (uint64_t)p.shape[k];
        if (strstr(p.name, "wpe")) m->position_params = (int64_t)n;
        if (p.init == RLHF_INIT_ZERO) continue;
        rlhf_dev r = bench_random(b, n, RLHF_F32);
        bench_check(b, b->c->copy(b->c->ctx, p.value, r, n * 4), "copy");
        if (p.init == RLHF_INIT_ONE) {
            const float one = 1.0f;
            for (uint64_t k = 0; k < n; k++)
                bench_check(b, b->c->upload(b->c->ctx, rlhf_dev_at(p.value, k * 4), &one, 4),
                            "upload");
        }
        b->c->release(b->c->ctx, r);
    }
}

struct model bench_model_open(const struct bench *b) {
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
    bench_check(b, m.plugin->create(&bench_host, m.config, &m.self), "create");
    const char *const all[] = {"all-linear"};
    const rlhf_adapter adapter = {
        .size = sizeof adapter, .rank = b->rank, .scale = 2, .target = all, .n_targets = 1};
    const rlhf_model_open open = {.size = sizeof open,
                                  .dtype = b->dtype,
                                  .trainable = 1,
                                  .compute = b->c,
                                  .adapter = b->rank ? &adapter : NULL};
    bench_check(b, m.ops->open(m.self, &open), "open");
    m.info.size = sizeof m.info;
    bench_check(b, m.ops->info(m.self, &m.info), "info");
    fill_params(b, &m);
    bench_check(b, m.ops->refresh(m.self), "refresh");
    return m;
}

void bench_model_close(const struct bench *b, struct model *m) {
    struct optimizer *o = m->optimizer;
    for (uint32_t i = 0; o && i < o->list.n; i++) {
        b->c->release(b->c->ctx, o->m[i]);
        b->c->release(b->c->ctx, o->v[i]);
    }
    if (o) b->c->release(b->c->ctx, o->clip);
    free(o);
    m->plugin->destroy(m->self);
    free(m->config);
}
