// bad_kernels.c: the reference backend with a wrong description of itself, chosen by $BAD.
#include <rlhf/compute.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const rlhf_plugin *reference;
static rlhf_compute *inner; // the reference's table

// What a newer backend passes: the struct with a field that this host does not know.
static struct {
    rlhf_kernels_ops known;
    uint64_t later;
} ops;
static struct {
    rlhf_compute known;
    uint64_t later;
} table;
static rlhf_plugin plugin;

static int is(const char *what) {
    const char *bad = getenv("BAD");
    return bad && strcmp(bad, what) == 0;
}

static rlhf_status open_table(void *self, const rlhf_kernels_open *o, rlhf_compute **out) {
    RLHF_TRY(((const rlhf_kernels_ops *)reference->ops)->open(self, o, &inner));
    rlhf_compute *t = &table.known;
    *t = *inner;
    *out = is("no_table") ? NULL : t;
    if (is("nameless")) t->name = NULL;
    if (is("no_detail")) t->detail = NULL;
    if (is("no_zero")) t->zero = NULL;
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
