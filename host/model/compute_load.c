// compute_load.c: see compute_load.h.
#include "model/compute_load.h"

#include "base/running.h"
#include "base/shared_object.h"
#include "plugin/load.h"
#include "plugin/search.h"
#include "plugin/trust.h"

#include <dirent.h>
#include <dlfcn.h>
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

// Finds the file of a name in the directories of kernels; if it is not found, out is its path in
// the last one.
static rlhf_status look_up(const struct rlhf__dirs *dirs, const char *name,
                           char out[RLHF__PATH_CAP], struct rlhf__error *err) {
    char file[256], *found = NULL;
    rlhf__path_put(out, "%s/kernels/kernels_%s.so", dirs->lib, name);
    if (snprintf(file, sizeof file, "kernels_%s.so", name) >= (int)sizeof file) return RLHF_OK;
    RLHF_TRY(rlhf__plugin_look(dirs, file, RLHF__KIND_KERNELS, &found, err));
    if (found) rlhf__path_put(out, "%s", found);
    free(found);
    return RLHF_OK;
}

rlhf_status rlhf__compute_find(const struct rlhf__dirs *dirs, const char *name,
                               char out[RLHF__PATH_CAP], struct rlhf__error *err) {
    if (strchr(name, '/'))
        rlhf__path_put(out, "%s", name);
    else
        RLHF_TRY(look_up(dirs, name, out, err));
    char real[RLHF__PATH_CAP];
    if (access(out, R_OK) != 0 || !rlhf__path_real(out, real)) return is_missing(name, out, err);
    memcpy(out, real, strlen(real) + 1);
    return rlhf__trust_code(out, dirs, err);
}

// Copy and check what rlhf_kernels_v0() returned (NULL: nothing), by the growth rule.
static rlhf_status check_kernels(const char *path, const rlhf_kernels *src, rlhf_kernels *out,
                                 struct rlhf__error *err) {
    uint32_t head[3]; // size, abi_major, abi_minor: never move
    memset(out, 0, sizeof *out);
    if (!src)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "compute backend '%s': " RLHF_KERNELS_SYMBOL "() returned nothing", path);
    memcpy(head, src, sizeof head);
    if (head[1] != RLHF_ABI_MAJOR || head[2] != RLHF_ABI_MINOR)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "compute backend '%s' is for contract %u.%u, this host needs %d.%d", path,
                          head[1], head[2], RLHF_ABI_MAJOR, RLHF_ABI_MINOR);
    const rlhf_status st = rlhf__copy_in(out, sizeof *out, src, RLHF_SIZE_TO(rlhf_kernels, destroy),
                                         "rlhf_kernels", err);
    if (st != RLHF_OK) return rlhf__error_context(err, "compute backend '%s'", path);
    if (out->create && out->destroy) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "compute backend '%s' lacks the function %s()", path,
                      out->create ? "destroy" : "create");
}

rlhf_status rlhf__compute_load(const char *path, void **object, rlhf_kernels *out,
                               struct rlhf__error *err) {
    rlhf_status st = rlhf__shared_object_open(path, object, err);
    if (st < 0) return rlhf__error_context(err, "compute backend");
    // POSIX: a function pointer may be stored through an object pointer of the same size.
    rlhf_kernels_entry_fn entry = NULL;
    void *symbol = dlsym(*object, RLHF_KERNELS_SYMBOL);
    memcpy(&entry, &symbol, sizeof entry);
    if (!entry)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "'%s' is no compute backend: it does not export " RLHF_KERNELS_SYMBOL,
                          path);
    struct rlhf__running before =
        rlhf__running_begin("compute backend", path, RLHF_KERNELS_SYMBOL "()");
    const rlhf_kernels *made = entry();
    rlhf__running_end(&before);
    return check_kernels(path, made, out, err);
}

rlhf_status rlhf__compute_describe(const rlhf_kernels *k, const char *path, uint32_t gpu,
                                   rlhf_device_info *out, struct rlhf__error *err) {
    memset(out, 0, sizeof *out);
    out->size = sizeof *out;
    out->devices = 1;
    if (!k->describe) return RLHF_OK;
    struct rlhf__running before = rlhf__running_begin("compute backend", path, "describe()");
    const rlhf_status st = k->describe(gpu, out);
    rlhf__running_end(&before);
    if (st < 0)
        return rlhf__fail(err, st, "compute backend '%s', describe(): %s", path,
                          rlhf__status_text(st));
    char *const texts[] = {out->name, out->driver, out->runtime, out->library, out->missing};
    const size_t caps[] = {sizeof out->name, sizeof out->driver, sizeof out->runtime,
                           sizeof out->library, sizeof out->missing};
    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++)
        texts[i][caps[i] - 1] = 0;
    return RLHF_OK;
}

// The number in the file root/device/name, such as "0x10de"; 0 without the file.
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
        n += kind == 0x03 || kind == 0x12; // a card's sound device does not count
    }
    closedir(d);
    return n;
}

int rlhf__nvidia_signs(const char *root) {
    // Device files of the driver, of WSL and of Tegra, and files that the kernel module creates
    // before the first device file.
    static const char *const files[] = {"dev/nvidiactl", "dev/dxg", "dev/nvhost-ctrl-gpu",
                                        "dev/nvgpu", "proc/driver/nvidia"};
    const char *named = getenv("CUDA_VISIBLE_DEVICES");
    char path[RLHF__PATH_CAP];
    if (named && *named) return 1;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (access(rlhf__path_put(path, "%s/%s", root, files[i]), F_OK) == 0) return 1;
    return rlhf__nvidia_cards(rlhf__path_put(path, "%s/sys/bus/pci/devices", root)) > 0;
}
