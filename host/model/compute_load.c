// compute_load.c: see compute_load.h.
#include "model/compute_load.h"

#include "config/spec.h"
#include "plugin/load.h"
#include "plugin/search.h"
#include "plugin/trust.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static rlhf_status is_missing(const char *name, const char *path, struct rlhf__error *err) {
    if (strchr(name, '/'))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "no compute backend '%s': the file '%s' does not exist", name, path);
    if (strcmp(name, "cuda") == 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the CUDA backend was not built; build rlhf-host where CUDA's nvcc is");
    return rlhf__fail(err, RLHF_E_INVALID,
                      "no compute backend '%s'; allowed are %scpu, cuda, reference and a path "
                      "with a '/' (no file '%s')",
                      name, strcmp(name, "auto") == 0 ? "" : "auto, ", path);
}

// Searches the kernel directories for the backend's file. If the file is not found, `out` is the
// path that it would have in the last directory.
static rlhf_status look_up(const struct rlhf__dirs *dirs, const char *name,
                           char out[RLHF__PATH_CAP], struct rlhf__error *err) {
    char file[256], *found = NULL;
    rlhf__path_put(out, "%s/kernels/kernels_%s.so", dirs->lib, name);
    if (snprintf(file, sizeof file, "kernels_%s.so", name) >= (int)sizeof file) return RLHF_OK;
    RLHF_TRY(rlhf__plugin_look(dirs, file, RLHF_KIND_KERNELS, &found, err));
    if (found) rlhf__path_put(out, "%s", found);
    free(found);
    return RLHF_OK;
}

rlhf_status rlhf__compute_find(const struct rlhf__dirs *dirs, const char *backend,
                               char out[RLHF__PATH_CAP], struct rlhf__error *err) {
    char name[RLHF__PATH_CAP];
    const size_t n = rlhf__spec_name_len(backend);
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), backend);
    if (backend[n] && strcmp(name, "auto") == 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "compute backend '%s': auto takes no options; name the backend that they "
                          "are for",
                          backend);
    if (strchr(name, '/'))
        rlhf__path_put(out, "%s", name);
    else
        RLHF_TRY(look_up(dirs, name, out, err));
    char real[RLHF__PATH_CAP];
    if (access(out, R_OK) != 0 || !rlhf__path_real(out, real)) return is_missing(name, out, err);
    memcpy(out, real, strlen(real) + 1);
    return rlhf__trust_code(out, dirs, err);
}

#define CONTEXT "compute backend '%s'"

struct typed {
    const struct rlhf__plugin *plugin;
    json_t *options;
};

// Values of options for text, choices and lists are taken literally: name=5 is the string "5".
static rlhf_status set_option(void *arg, const char *key, const char *value,
                              struct rlhf__error *err) {
    const struct typed *t = arg;
    const struct rlhf__origin from = {.source = "compute.backend", .section = ""};
    const int32_t i = rlhf__opt_find(&t->plugin->table, key);
    rlhf_opt o;
    if (i < 0) {
        rlhf__opts_unknown(&t->plugin->table, key, NULL, &from, err);
        const size_t n = strlen(err->text);
        snprintf(err->text + n, sizeof err->text - n, "; see rlhf-host plugin info %s",
                 t->plugin->path);
        return RLHF_E_INVALID;
    }
    rlhf__opt_at(&t->plugin->table, (uint32_t)i, &o);
    json_t *v = rlhf__typed_value(value);
    const int as_is = o.type == RLHF_T_BOOL || o.type == RLHF_T_I64 || o.type == RLHF_T_F64 ||
                      o.type == RLHF_T_I64_LIST || o.type == RLHF_T_F64_LIST ||
                      (o.type == RLHF_T_LIST && json_is_object(v));
    if (v && !as_is && !json_is_string(v) && !json_is_array(v)) {
        json_decref(v);
        v = json_string(value);
    }
    if (json_object_get(t->options, key)) {
        json_decref(v);
        return rlhf__fail(err, RLHF_E_INVALID, "compute.backend: %s is given twice", key);
    }
    return json_object_set_new(t->options, key, v) == 0 ? RLHF_OK
                                                        : RLHF__NOMEM(err, "out of memory");
}

// Read the options after the backend's name. Kernels must not have options that name code, because
// a run directory may name kernels and their options.
static rlhf_status read_options(const struct rlhf__plugin *plugin, const char *backend,
                                json_t **out, struct rlhf__error *err) {
    const size_t n = rlhf__spec_name_len(backend);
    struct typed t = {plugin, json_object()};
    *out = t.options;
    if (!t.options) return RLHF__NOMEM(err, "out of memory");
    for (uint32_t i = 0; i < plugin->table.n; i++) {
        rlhf_opt o;
        rlhf__opt_at(&plugin->table, i, &o);
        if (o.flags & RLHF_OPT_TRUSTED)
            return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                              "its option \"%s\" names code (RLHF_OPT_TRUSTED), which options of "
                              "kernels must not",
                              o.key);
    }
    if (!backend[n]) return RLHF_OK;
    RLHF_TRY(rlhf__typed_utf8("compute.backend", backend, err));
    return rlhf__spec_pairs(backend + n + 1, "compute.backend", set_option, &t, err);
}

rlhf_status rlhf__kernels_load(const struct rlhf__dirs *dirs, const char *backend,
                               struct rlhf__log *log, struct rlhf__kernels *out,
                               struct rlhf__error *err) {
    const struct rlhf__origin from = {.source = "compute.backend", .section = ""};
    char path[RLHF__PATH_CAP];
    *out = (struct rlhf__kernels){.services = {.log = log, .phase = -1}};
    RLHF_TRY(rlhf__compute_find(dirs, backend, path, err));
    rlhf_status st = rlhf__plugins_open(dirs, &out->plugins, err);
    // rlhf__compute_open computes the checksum
    if (st == RLHF_OK) rlhf__plugins_leave_sums(out->plugins);
    if (st == RLHF_OK)
        st = rlhf__plugin_open(out->plugins, path, RLHF_KIND_KERNELS, RLHF__NAME_TYPED,
                               "compute.backend", &out->plugin, err);
    if (st == RLHF_OK) st = read_options(out->plugin, backend, &out->options, err);
    if (st == RLHF_OK)
        st = rlhf__instance_open(out->plugin, &out->services, "kernels", out->options, &from,
                                 &out->instance, err);
    return st == RLHF_OK ? st : rlhf__error_context(err, CONTEXT, path);
}

void rlhf__kernels_finish(struct rlhf__kernels *k) {
    rlhf__instance_close(k->instance);
    rlhf__plugins_close(k->plugins);
    json_decref(k->options);
    *k = (struct rlhf__kernels){0};
}

rlhf_status rlhf__kernels_describe(const struct rlhf__kernels *k, uint32_t gpu,
                                   struct rlhf__device_info *out, struct rlhf__error *err) {
    const rlhf_kernels_ops *ops = &k->plugin->ops.kernels;
    const char *json = NULL;
    *out = (struct rlhf__device_info){0};
    if (!ops->describe) return rlhf__device_info_read(NULL, out, err);
    struct rlhf__call call = rlhf__call_begin(k->instance, "describe()");
    rlhf_status st = rlhf__call_end(&call, ops->describe(k->instance->self, gpu, &json), err);
    if (st == RLHF_OK && !json)
        return rlhf__fail(err, RLHF_E_INVALID, CONTEXT ": describe() gave nothing",
                          k->plugin->path);
    if (st == RLHF_OK) {
        st = rlhf__device_info_read(json, out, err);
        if (st != RLHF_OK) rlhf__error_context(err, "describe()");
    }
    return st == RLHF_OK ? st : rlhf__error_context(err, CONTEXT, k->plugin->path);
}

// Returns the number in the file root/device/name, e.g. "0x10de", or 0 without such a file.
static unsigned long pci_number(const char *root, const char *device, const char *name) {
    char path[RLHF__PATH_CAP], text[32] = "";
    FILE *f = fopen(rlhf__path_put(path, "%s/%s/%s", root, device, name), "r");
    if (!f) return 0;
    if (!fgets(text, sizeof text, f)) text[0] = 0;
    fclose(f);
    return strtoul(text, NULL, 16);
}

int rlhf__nvidia_cards(const char *root) {
    int n = 0;
    DIR *d = opendir(root);
    if (!d) return 0;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.' || pci_number(root, e->d_name, "vendor") != 0x10de) continue;
        const unsigned long kind = pci_number(root, e->d_name, "class") >> 16;
        // display or accelerator: do not count a card's sound device
        n += kind == 0x03 || kind == 0x12;
    }
    closedir(d);
    return n;
}

int rlhf__nvidia_signs(const char *root) {
    // Each of these paths shows that there may be a GPU: device files of the driver, of WSL and of
    // Tegra, and the folder that the kernel module creates before the driver's first device file.
    static const char *const files[] = {"dev/nvidiactl", "dev/dxg", "dev/nvhost-ctrl-gpu",
                                        "dev/nvgpu", "proc/driver/nvidia"};
    const char *named = getenv("CUDA_VISIBLE_DEVICES");
    char path[RLHF__PATH_CAP];
    if (named && *named) return 1;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (access(rlhf__path_put(path, "%s/%s", root, files[i]), F_OK) == 0) return 1;
    return rlhf__nvidia_cards(rlhf__path_put(path, "%s/sys/bus/pci/devices", root)) > 0;
}
