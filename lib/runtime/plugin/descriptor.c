// descriptor.c: see descriptor.h.
#include "plugin/descriptor.h"

#include "base/file.h"
#include "base/printable.h"

#include <rlhf/options_check.h>
#include <rlhf/plugin_check.h>

#include <stdlib.h>
#include <string.h>

#define MAX_PLUGINS 256u

rlhf_status rlhf__copy_in(void *dst, uint32_t cap, const void *src, uint32_t min, const char *what,
                          struct rlhf__error *err) {
    uint32_t size;
    memcpy(&size, src, sizeof size);
    rlhf_status st = rlhf_copy_in(dst, cap, src, min);
    if (st == RLHF_E_INVALID)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "its %s says it has %u bytes, %u to %u are possible", what, size, min,
                          RLHF_STRUCT_MAX);
    if (st < 0)
        return rlhf__fail(err, st,
                          "its %s uses fields newer than this host (%u > %u bytes); use a newer "
                          "rlhf-host or rebuild the plugin with SDK " RLHF_SDK_VERSION,
                          what, size, cap);
    return RLHF_OK;
}

rlhf_status rlhf__bundle_check(const char *path, const rlhf_bundle *src, rlhf_bundle *out,
                               struct rlhf__error *err) {
    char why[256], line[512];
    uint32_t head[3]; // size, abi_major, abi_minor: at the same place in all versions
    if (!src)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "%s: %s() returned nothing", path,
                          RLHF_ENTRY_SYMBOL);
    memcpy(head, src, sizeof head);
    if (head[1] != RLHF_ABI_MAJOR)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s: built for plugin contract %u.%u, this rlhf-host speaks %d.%d; "
                          "rebuild it with SDK " RLHF_SDK_VERSION,
                          path, head[1], head[2], RLHF_ABI_MAJOR, RLHF_ABI_MINOR);
    const uint32_t min = RLHF_SIZE_TO(rlhf_bundle, built_with);
    if (rlhf__copy_in(out, sizeof *out, src, min, "bundle", err) < 0)
        return rlhf__error_context(err, "%s", path);
    if (out->n_plugins == 0 || out->n_plugins > MAX_PLUGINS || !out->plugins)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s: its bundle lists %u plugins, 1 to %u are "
                          "possible",
                          path, out->n_plugins, MAX_PLUGINS);
    if (rlhf_plugin_text_refused("built_with", out->built_with, RLHF_PLUGIN_VERSION_MAX, why,
                                 sizeof why))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "%s: its bundle has %s", path,
                          rlhf__printable(why, line, sizeof line));
    return RLHF_OK;
}

// The compute contract has its own version, which is in the ops tables of models and kernels.
static rlhf_status check_compute(const void *src, const char *what, struct rlhf__error *err) {
    uint32_t head[4]; // size, flags, compute_major, compute_minor: always at this place
    memcpy(head, src, sizeof head[0]);
    if (head[0] < sizeof head)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "its %s has %u bytes and states no version of "
                          "the compute contract (compute_major, compute_minor)",
                          what, head[0]);
    memcpy(head, src, sizeof head);
    if (head[2] == RLHF_COMPUTE_MAJOR && head[3] == RLHF_COMPUTE_MINOR) return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_UNSUPPORTED,
        "it is for the compute contract %u.%u (compute_major and compute_minor of "
        "its %s), this rlhf-host speaks %d.%d exactly; rebuild it with SDK " RLHF_SDK_VERSION,
        head[2], head[3], what, RLHF_COMPUTE_MAJOR, RLHF_COMPUTE_MINOR);
}

// Copy an ops table, whose size in its first version is `min`.
static rlhf_status copy_table(void *dst, size_t cap, const void *src, uint32_t min,
                              const char *what, struct rlhf__error *err) {
    uint32_t size;
    memcpy(&size, src, sizeof size);
    if (size % sizeof(void *) == 0) return rlhf__copy_in(dst, (uint32_t)cap, src, min, what, err);
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "its %s says it has %u bytes, which is not a multiple of %zu; set its size "
                      "to sizeof(%s)",
                      what, size, sizeof(void *), what);
}

// Copy the ops table to out->ops. Sets *fault to what is wrong with the table's functions, or to
// NULL.
static rlhf_status copy_ops(struct rlhf__plugin *out, const char **fault, struct rlhf__error *err) {
    const void *src = out->desc.ops;
    const uint32_t min = rlhf_ops_first_size(out->desc.kind);
    if (out->desc.kind == RLHF_KIND_ALGO) {
        rlhf_algo_ops *o = &out->ops.algo;
        RLHF_TRY(copy_table(o, sizeof *o, src, min, "rlhf_algo_ops", err));
        *fault = rlhf_algo_ops_fault(o);
    } else if (out->desc.kind == RLHF_KIND_REWARD) {
        rlhf_reward_ops *o = &out->ops.reward;
        RLHF_TRY(copy_table(o, sizeof *o, src, min, "rlhf_reward_ops", err));
        *fault = rlhf_reward_ops_fault(o);
    } else if (out->desc.kind == RLHF_KIND_SINK) {
        rlhf_sink_ops *o = &out->ops.sink;
        RLHF_TRY(copy_table(o, sizeof *o, src, min, "rlhf_sink_ops", err));
        *fault = rlhf_sink_ops_fault(o);
    } else if (out->desc.kind == RLHF_KIND_ENVIRONMENT) {
        rlhf_environment_ops *o = &out->ops.environment;
        RLHF_TRY(copy_table(o, sizeof *o, src, min, "rlhf_environment_ops", err));
        *fault = rlhf_environment_ops_fault(o);
    } else if (out->desc.kind == RLHF_KIND_KERNELS) {
        rlhf_kernels_ops *o = &out->ops.kernels;
        RLHF_TRY(check_compute(src, "rlhf_kernels_ops", err));
        RLHF_TRY(copy_table(o, sizeof *o, src, min, "rlhf_kernels_ops", err));
        *fault = rlhf_kernels_ops_fault(o);
    } else {
        rlhf_model_ops *o = &out->ops.model;
        RLHF_TRY(check_compute(src, "rlhf_model_ops", err));
        RLHF_TRY(copy_table(o, sizeof *o, src, min, "rlhf_model_ops", err));
        *fault = rlhf_model_ops_fault(o);
    }
    return RLHF_OK;
}

// Reject unknown flags, because they may change the meaning of the plugin.
static rlhf_status check_flags(const struct rlhf__plugin *p, struct rlhf__error *err) {
    uint32_t set = rlhf_ops_unknown_flags(&p->desc);
    int ops = set != 0;
    if (!ops) set = p->desc.flags;
    if (!set) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "%s sets bit %d of the flags of its %s, which this host does not know",
                      p->desc.id, __builtin_ctz(set), ops ? "ops" : "descriptor");
}

static rlhf_status check_options(struct rlhf__plugin *p, struct rlhf__error *err) {
    const rlhf_plugin *d = &p->desc;
    char why[512], shown[1024];
    if (rlhf_plugin_opts_refused(d, why, sizeof why))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "%s", rlhf__printable(why, shown, sizeof shown));
    return rlhf__opt_table_init(&p->table, d->opts, d->n_opts, d->opt_stride, err);
}

// Check and copy one descriptor. The caller adds the file's path to the message.
static rlhf_status check(const rlhf_plugin *src, struct rlhf__plugin *out,
                         struct rlhf__error *err) {
    rlhf_plugin *d = &out->desc;
    const uint32_t min = RLHF_SIZE_TO(rlhf_plugin, extension);
    char shown[72], why[256], line[512];
    if (!src) return rlhf__fail(err, RLHF_E_UNSUPPORTED, "its bundle lists a NULL plugin");
    RLHF_TRY(rlhf__copy_in(d, sizeof *d, src, min, "descriptor", err));
    if (!rlhf_plugin_id_is_valid(d->id))
        return rlhf__fail(
            err, RLHF_E_UNSUPPORTED,
            "its id is \"%s\"; it must be reverse DNS such as \"org.example.period\": "
            "two or more parts with dots between them, of letters, digits, '_' and "
            "'-', in all at most 127 characters",
            d->id ? rlhf__printable(d->id, shown, sizeof shown) : "");
    if (d->kind < RLHF_KIND_ALGO || d->kind > RLHF_KIND_SINK)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s is of kind %u, which this host does not know", d->id, d->kind);
    const uint32_t oldest = rlhf_plugin_oldest_host(d, out->abi_minor);
    if (oldest > RLHF_ABI_MINOR)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s needs plugin contract %d.%u or newer, this rlhf-host speaks %d.%d; "
                          "use a newer rlhf-host, or rebuild it with SDK " RLHF_SDK_VERSION,
                          d->id, RLHF_ABI_MAJOR, oldest, RLHF_ABI_MAJOR, RLHF_ABI_MINOR);
    if (!d->version || !d->summary)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "%s has %s NULL; it must be a text", d->id,
                          d->version ? "summary" : "version");
    if (rlhf_plugin_texts_refused(d, why, sizeof why))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "%s has %s", d->id,
                          rlhf__printable(why, line, sizeof line));
    if (!d->vendor) d->vendor = "";
    if (!d->url) d->url = "";
    if (!d->license) d->license = "";
    if (check_options(out, err) < 0) return rlhf__error_context(err, "%s", d->id);
    const char *fault = rlhf_plugin_fault(d);
    if (fault) return rlhf__fail(err, RLHF_E_UNSUPPORTED, "%s %s", d->id, fault);
    if (!d->ops) return rlhf__fail(err, RLHF_E_UNSUPPORTED, "%s has no ops table", d->id);
    if (copy_ops(out, &fault, err) < 0) return rlhf__error_context(err, "%s", d->id);
    if (fault) return rlhf__fail(err, RLHF_E_UNSUPPORTED, "%s %s", d->id, fault);
    return check_flags(out, err);
}

static rlhf_status name_parts(struct rlhf__plugin *p, const char *path) {
    const char *file = rlhf__path_base(path);
    size_t n = strlen(file);
    if (n > 3 && strcmp(file + n - 3, ".so") == 0) n -= 3;
    p->path = strdup(path);
    p->file = strdup(file);
    p->stem = strndup(file, n);
    return p->path && p->file && p->stem ? RLHF_OK : RLHF_E_NOMEM;
}

rlhf_status rlhf__plugin_init(struct rlhf__plugin *out, const char *path, const char sha256[65],
                              const rlhf_plugin *src, struct rlhf__error *err) {
    if (name_parts(out, path) < 0) return rlhf__fail(err, RLHF_E_NOMEM, "%s: out of memory", path);
    if (check(src, out, err) < 0) return rlhf__error_context(err, "%s", path);
    memcpy(out->sha256, sha256, sizeof out->sha256);
    return RLHF_OK;
}

void rlhf__plugin_finish(struct rlhf__plugin *p) {
    free(p->path);
    free(p->file);
    free(p->stem);
    *p = (struct rlhf__plugin){0};
}
