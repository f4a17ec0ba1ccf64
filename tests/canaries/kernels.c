// kernels.c: backends that each break one rule, chosen by a BREAK_ macro; see reward.c. They pass
// their calls on to the reference backend.
#include <rlhf/compute.h>

#include <dlfcn.h>

struct kernels {
    const rlhf_host *host;
    const rlhf_plugin *plugin; // the reference backend's
    void *inner;
};

static const rlhf_kernels_ops *ops_of(const struct kernels *k) { return k->plugin->ops; }

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    void *object = dlopen(REFERENCE_SO, RTLD_NOW | RTLD_LOCAL);
    void *symbol = object ? dlsym(object, RLHF_ENTRY_SYMBOL) : NULL;
    rlhf_entry_fn entry;
    static const int64_t defaults[8]; // of the reference backend's options: zeros
    (void)config;
    if (!symbol) return host->fail(host, RLHF_E_IO, "no reference backend");
    memcpy(&entry, &symbol, sizeof entry);
    struct kernels *k = host->alloc(host, sizeof *k);
    if (!k) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    k->host = host;
    k->plugin = entry()->plugins[0];
    const rlhf_status st =
        k->plugin->create ? k->plugin->create(host, defaults, &k->inner) : RLHF_OK;
    if (st != RLHF_OK)
        host->free(host, k);
    else
        *self = k;
    return st;
}

static void destroy(void *self) {
    struct kernels *k = self;
    if (!k) return;
    if (k->plugin->create) k->plugin->destroy(k->inner);
    k->host->free(k->host, k);
}

static rlhf_status open_table(void *self, const rlhf_kernels_open *how, rlhf_compute **out) {
    (void)how;
    (void)out;
    const struct kernels *k = self;
    (void)k;
#if defined BREAK_SILENT
    return RLHF_E_DEVICE;
#elif defined BREAK_OPEN
    *out = NULL;
    return RLHF_OK;
#elif defined BREAK_NO_CARD
    rlhf_kernels_open any = *how;
    any.gpu = 0;
    return ops_of(k)->open(k->inner, &any, out);
#else
    return ops_of(k)->open(k->inner, how, out);
#endif
}

static void close_table(void *self, rlhf_compute *table) {
    struct kernels *k = self;
    if (table) ops_of(k)->close(k->inner, table);
}

static rlhf_status describe(void *self, uint32_t gpu, const char **json) {
    (void)self;
    (void)gpu;
#if defined BREAK_JSON
    *json = "{\"name\": 3}";
#elif defined BREAK_MISSING
    *json = NULL;
#else
    *json = "{\"name\": \"a canary\", \"devices\": 1}";
#endif
    return RLHF_OK;
}

static const rlhf_kernels_ops ops = {.size = sizeof ops,
                                     .compute_major = RLHF_COMPUTE_MAJOR,
                                     .compute_minor = RLHF_COMPUTE_MINOR,
                                     .device = RLHF_DEVICE_CPU,
                                     .open = open_table,
                                     .close = close_table,
                                     .describe = describe};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_KERNELS,
    .id = "org.example.canary",
    .version = "1",
    .summary = "breaks a rule",
    .create = create,
    .destroy = destroy,
    .ops = &ops,
};

RLHF_DEFINE_PLUGIN(plugin)
