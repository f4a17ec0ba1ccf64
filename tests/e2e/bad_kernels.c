// bad_kernels.c: the reference backend with a wrong description of itself, chosen by $BAD.
#include <rlhf/compute.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const rlhf_kernels *reference;
static rlhf_compute *inner; // the reference's table

// What a newer backend passes: the struct with a field that this host does not know.
static struct {
    rlhf_kernels known;
    uint64_t later;
} kernels;
static struct {
    rlhf_compute known;
    uint64_t later;
} table;

static int is(const char *what) {
    const char *bad = getenv("BAD");
    return bad && strcmp(bad, what) == 0;
}

static rlhf_status create(const rlhf_kernels_options *o, rlhf_compute **out, char *err,
                          uint64_t err_cap) {
    RLHF_TRY(reference->create(o, &inner, err, err_cap));
    rlhf_compute *t = &table.known;
    *t = *inner;
    *out = is("no_table") ? NULL : t;
    if (is("nameless")) t->name = NULL;
    if (is("no_detail")) t->detail = NULL;
    if (is("no_zero")) t->zero = NULL;
    if (is("flag")) t->flags |= 1u << 30;
    if (is("short_table")) t->size = 64;
    if (is("longer") || is("newer_table")) t->size = sizeof table;
    table.later = is("newer_table") ? 1 : 0;
    return RLHF_OK;
}

static void destroy(rlhf_compute *t) {
    if (t == &table.known) reference->destroy(inner);
}

RLHF_EXPORT const rlhf_kernels *rlhf_kernels_v0(void);

const rlhf_kernels *rlhf_kernels_v0(void) {
    void *so = dlopen(REFERENCE_SO, RTLD_NOW | RTLD_LOCAL);
    void *symbol = so ? dlsym(so, RLHF_KERNELS_SYMBOL) : NULL;
    rlhf_kernels_entry_fn entry = NULL;
    memcpy(&entry, &symbol, sizeof entry);
    reference = entry ? entry() : NULL;
    if (!reference) return NULL;
    kernels.known = (rlhf_kernels){.size = sizeof(rlhf_kernels),
                                   .abi_major = RLHF_ABI_MAJOR,
                                   .abi_minor = RLHF_ABI_MINOR,
                                   .name = "bad_kernels",
                                   .summary = "describes itself wrongly; for tests",
                                   .create = is("no_create") ? NULL : create,
                                   .destroy = destroy};
    if (is("minor")) kernels.known.abi_minor++;
    if (is("short_kernels")) kernels.known.size = 24;
    if (is("longer") || is("newer_kernels")) kernels.known.size = sizeof kernels;
    kernels.later = is("newer_kernels") ? 1 : 0;
    return &kernels.known;
}
