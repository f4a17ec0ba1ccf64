// backend.c: opens a compute backend, with a host that records the backend's last failure. See
// rlhf/test.h.
#include <rlhf/test.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

// The backend that contains this host.
static struct rlhf_test_backend *backend_of(const rlhf_host *h) {
    union {
        const rlhf_host *table;
        struct rlhf_test_backend *backend; // valid because host is its first member
    } u;
    u.table = h;
    return u.backend;
}

static void do_log(const rlhf_host *h, int32_t level, const char *text) {
    (void)h;
    if (level >= RLHF_LOG_WARN) fprintf(stderr, "%s\n", text);
}

static rlhf_status do_fail(const rlhf_host *h, rlhf_status code, const char *text) {
    snprintf(backend_of(h)->said, RLHF_TEST_TEXT, "%s", text);
    return code < 0 ? code : RLHF_E_INTERNAL;
}

static void *do_alloc(const rlhf_host *h, uint64_t bytes) {
    (void)h;
    if (bytes == 0 || bytes > SIZE_MAX - 64) return NULL;
    const size_t rounded = ((size_t)bytes + 63) / 64 * 64;
    void *p = aligned_alloc(64, rounded);
    return p ? memset(p, 0, rounded) : NULL;
}

static void do_free(const rlhf_host *h, void *p) {
    (void)h;
    free(p);
}

static void do_metric(const rlhf_host *h, const char *name, double value, double weight,
                      int32_t combine) {
    (void)h;
    (void)name;
    (void)value;
    (void)weight;
    (void)combine;
}

static void do_rng(const rlhf_host *h, const char *stream, rlhf_rng *out) {
    (void)h;
    *out = (rlhf_rng){1, rlhf_rng_stream(stream), 0};
}

static int32_t do_cancelled(const rlhf_host *h) {
    (void)h;
    return 0;
}

static const void *do_service(const rlhf_host *h, const char *id) {
    (void)h;
    (void)id;
    return NULL;
}

static rlhf_status do_reduce(const rlhf_host *h, double *sums, uint32_t n) {
    (void)h;
    (void)sums;
    (void)n;
    return RLHF_OK;
}

static const rlhf_host host = {.size = sizeof host,
                               .abi_minor = RLHF_ABI_MINOR,
                               .name = "rlhf-test",
                               .version = RLHF_SDK_VERSION,
                               .log = do_log,
                               .fail = do_fail,
                               .alloc = do_alloc,
                               .free = do_free,
                               .metric = do_metric,
                               .rng = do_rng,
                               .cancelled = do_cancelled,
                               .service = do_service,
                               .reduce = do_reduce};

// Returns NULL if p is a backend that can be opened, otherwise the reason why not.
static const char *fault_of(const rlhf_plugin *p) {
    if (!p) return "it has no plugin";
    const rlhf_kernels_ops *o = p->ops;
    if (p->kind != RLHF_KIND_KERNELS) return "it is not a compute backend";
    if (!o || !o->open || !o->close) return "its open() or close() is missing";
    return o->compute_major == RLHF_COMPUTE_MAJOR && o->compute_minor == RLHF_COMPUTE_MINOR
               ? NULL
               : "it is built for another compute contract";
}

const rlhf_plugin *rlhf_test_backend_load(const char *path) {
    // RTLD_NODELETE keeps the library's code mapped: the backend's threads may still run after the
    // test, and a sanitizer's report may name its functions.
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    union {
        void *data;
        rlhf_entry_fn entry;
    } u;
    u.data = so ? dlsym(so, RLHF_ENTRY_SYMBOL) : NULL;
    if (!u.data) {
        fprintf(stderr, "%s\n", dlerror());
        return NULL;
    }
    const rlhf_bundle *b = u.entry();
    const int same =
        b && b->abi_major == RLHF_ABI_MAJOR && b->abi_minor == RLHF_ABI_MINOR && b->n_plugins;
    const char *fault = same ? fault_of(b->plugins[0]) : "it is built for another contract";
    if (fault) fprintf(stderr, "%s: %s\n", path, fault);
    return fault ? NULL : b->plugins[0];
}

rlhf_status rlhf_test_backend_open(struct rlhf_test_backend *b, const rlhf_plugin *p,
                                   const rlhf_kernels_open *open) {
    memset(b, 0, sizeof *b);
    b->host = host;
    b->plugin = p;
    b->ops = p->ops;
    if (p->config_size) {
        b->config = malloc(p->config_size);
        if (!b->config) return b->host.fail(&b->host, RLHF_E_NOMEM, "out of memory");
        rlhf_test_config(p, b->config);
    }
    if (p->create) RLHF_TRY(p->create(&b->host, b->config, &b->self));
    return open ? b->ops->open(b->self, open, &b->c) : RLHF_OK;
}

void rlhf_test_backend_close(struct rlhf_test_backend *b) {
    if (!b->plugin) return;
    b->ops->close(b->self, b->c);
    if (b->plugin->destroy) b->plugin->destroy(b->self);
    free(b->config);
    memset(b, 0, sizeof *b);
}
