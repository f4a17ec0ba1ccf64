// bad_kernels.c: the reference backend with options. $BAD selects one error in the backend's
// description of itself.
#include <rlhf/compute.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const rlhf_plugin *reference;
static rlhf_compute *inner; // the reference's table

// A struct from a newer backend, with one field that this host does not know.
static struct {
    rlhf_kernels_ops known;
    uint64_t later;
} ops;
static struct {
    rlhf_compute known;
    uint64_t later;
} table;
static rlhf_plugin plugin;

// The options, which the table's detail shows.
struct config {
    const char *label;
    const char *const *parts;
    int32_t fast, reserved;
};

static const rlhf_opt opts[] = {
    RLHF_OPT_BOOL(struct config, fast, 0, "shown"),
    RLHF_OPT_STR(struct config, label, "none", "shown"),
    RLHF_OPT_LIST(struct config, parts, NULL, NULL, "counted"),
};
static const rlhf_opt code[] = {{.key = "label",
                                 .help = "shown",
                                 .type = RLHF_T_STR,
                                 .flags = RLHF_OPT_TRUSTED,
                                 .offset = offsetof(struct config, label)}};
static char detail[128];
static const rlhf_host *own_host;

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    static const uint64_t defaults[16]; // of the reference backend's options, which are all 0
    const struct config *c = config;
    unsigned n = 0;
    own_host = host;
    while (c->parts && c->parts[n])
        n++;
    snprintf(detail, sizeof detail, "fast %d, label %s, %u parts", c->fast, c->label, n);
    return reference->create(host, defaults, self);
}

static int is(const char *what) {
    const char *bad = getenv("BAD");
    return bad && strcmp(bad, what) == 0;
}

static rlhf_status burn(void *ctx, rlhf_dev x, uint64_t n, double *out) {
    (void)ctx;
    (void)out;
    (void)x;
    (void)n;
    return own_host->fail(own_host, RLHF_E_DEVICE, "the device is on fire");
}

static rlhf_status open_table(void *self, const rlhf_kernels_open *o, rlhf_compute **out) {
    rlhf_kernels_open asked = *o;
    if (is("ignores_arithmetic")) asked.arithmetic = NULL;
    RLHF_TRY(((const rlhf_kernels_ops *)reference->ops)->open(self, &asked, &inner));
    rlhf_compute *t = &table.known;
    *t = *inner;
    *out = is("no_table") ? NULL : t;
    t->detail = detail;
    if (is("nameless")) t->name = NULL;
    if (is("no_detail")) t->detail = NULL;
    if (is("no_zero")) t->zero = NULL;
    if (is("on_fire")) t->sumsq = burn;
    if (is("on_fire")) t->sumsq_many = NULL;
    if (is("flag")) t->flags |= 1u << 30;
    if (is("reverse_only")) t->flags &= ~(uint32_t)RLHF_COMPUTE_DIVERGENCE;
    if (is("short_table")) t->size = 64;
    if (is("longer") || is("newer_table")) t->size = sizeof table;
    table.later = is("newer_table") ? 1 : 0;
    return RLHF_OK;
}

static void close_table(void *self, rlhf_compute *t) {
    if (t == &table.known) ((const rlhf_kernels_ops *)reference->ops)->close(self, inner);
}

const rlhf_bundle *RLHF_ENTRY(void) {
    static const rlhf_plugin *const list[] = {&plugin};
    static const rlhf_bundle bundle = {sizeof bundle, RLHF_ABI_MAJOR,  RLHF_ABI_MINOR, 1,
                                       list,          RLHF_SDK_VERSION};
    void *so = dlopen(REFERENCE_SO, RTLD_NOW | RTLD_LOCAL);
    void *symbol = so ? dlsym(so, RLHF_ENTRY_SYMBOL) : NULL;
    rlhf_entry_fn entry = NULL;
    memcpy(&entry, &symbol, sizeof entry);
    if (!entry) return NULL;
    reference = entry()->plugins[0];
    plugin = *reference;
    plugin.id = "org.rlhf-host.test.bad-kernels";
    plugin.summary = "describes itself wrongly; for tests";
    plugin.ops = &ops;
    plugin.opts = is("code") ? code : opts;
    plugin.n_opts = is("code") ? 1 : sizeof opts / sizeof *opts;
    plugin.opt_stride = sizeof *opts;
    plugin.config_size = sizeof(struct config);
    plugin.create = create;
    ops.known = (rlhf_kernels_ops){.size = sizeof(rlhf_kernels_ops),
                                   .compute_major = RLHF_COMPUTE_MAJOR,
                                   .compute_minor = RLHF_COMPUTE_MINOR,
                                   .device = RLHF_DEVICE_CPU,
                                   .open = is("no_open") ? NULL : open_table,
                                   .close = close_table};
    if (is("minor")) ops.known.compute_minor++;
    if (is("short_kernels")) ops.known.size = 12;
    if (is("longer") || is("newer_kernels")) ops.known.size = sizeof ops;
    ops.later = is("newer_kernels") ? 1 : 0;
    return &bundle;
}
