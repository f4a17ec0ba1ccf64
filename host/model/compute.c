// compute.c: see compute.h.
#include "model/compute.h"

#include "base/bits.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/running.h"
#include "base/sha256.h"
#include "base/shared_object.h"
#include "plugin/load.h"
#include "plugin/trust.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static rlhf_status find(const struct rlhf__compute_spec *spec, char out[RLHF__PATH_CAP],
                        struct rlhf__error *err) {
    if (strchr(spec->backend, '/'))
        rlhf__path_put(out, "%s", spec->backend);
    else
        rlhf__path_put(out, "%s/kernels/kernels_%s.so", spec->dirs->lib, spec->backend);
    char real[RLHF__PATH_CAP];
    if (access(out, R_OK) != 0 || !rlhf__path_real(out, real))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "no compute backend '%s': the file '%s' does not exist", spec->backend,
                          out);
    memcpy(out, real, strlen(real) + 1);
    return rlhf__trust_code(out, spec->dirs, err);
}

static rlhf_status load_entry(struct rlhf__compute *c, struct rlhf__error *err) {
    rlhf_status st = rlhf__shared_object_open(c->path, &c->object, err);
    if (st < 0) return rlhf__error_context(err, "compute backend");
    // POSIX: a function pointer may be stored through an object pointer of the same size.
    rlhf_kernels_entry_fn entry = NULL;
    void *symbol = dlsym(c->object, RLHF_KERNELS_SYMBOL);
    memcpy(&entry, &symbol, sizeof entry);
    if (!entry)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "'%s' is no compute backend: it does not export " RLHF_KERNELS_SYMBOL,
                          c->path);
    const rlhf_kernels *made = entry();
    uint32_t head[3]; // size, abi_major, abi_minor: never move
    if (!made)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "compute backend '%s': " RLHF_KERNELS_SYMBOL "() returned nothing",
                          c->path);
    memcpy(head, made, sizeof head);
    if (head[1] != RLHF_ABI_MAJOR || head[2] != RLHF_ABI_MINOR)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "compute backend '%s' is for contract %u.%u, this host needs %d.%d",
                          c->path, head[1], head[2], RLHF_ABI_MAJOR, RLHF_ABI_MINOR);
    st = rlhf__copy_in(&c->kernels, sizeof c->kernels, made, RLHF_SIZE_TO(rlhf_kernels, destroy),
                       "rlhf_kernels", err);
    if (st != RLHF_OK) return rlhf__error_context(err, "compute backend '%s'", c->path);
    if (c->kernels.create && c->kernels.destroy) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "compute backend '%s' lacks the function %s()", c->path,
                      c->kernels.create ? "destroy" : "create");
}

// libgomp's threads spin for milliseconds before they sleep. On a machine that runs anything else
// that stalls every parallel region for a time slice (measured: 38 s instead of 2 s at a load of
// 14), so they are told to sleep soon (no slower on a quiet machine). Said here because libgomp
// reads it when it is loaded, which is before any code of a backend that is linked with it runs.
static void shorten_spinning(void) {
    if (!getenv("OMP_WAIT_POLICY")) setenv("GOMP_SPINCOUNT", "1000", 0);
}

// clang-format off
#define MUST_HAVE(X)                                                                              \
    X(name) X(detail) X(last_error) X(alloc) X(release) X(bytes_in_use) X(upload) X(download) X(copy) X(zero)        \
    X(convert) X(sync)
// clang-format on
#define RETURN_IF_LACKING(f)                                                                       \
    if (!RLHF_COMPUTE_HAS(t, f)) return #f;

// The name of a member that every table must have and this one lacks, or NULL.
static const char *lacking(const rlhf_compute *t) {
    MUST_HAVE(RETURN_IF_LACKING)
    return NULL;
}

// The table that create() made becomes the host's own.
static rlhf_status read_table(struct rlhf__compute *c, struct rlhf__error *err) {
    rlhf_compute *t = &c->read;
    if (!c->made)
        return rlhf__fail(err, RLHF_E_INVALID, "compute backend '%s': create() made no table",
                          c->path);
    rlhf_status st =
        rlhf__copy_in(t, sizeof *t, c->made, RLHF_SIZE_TO(rlhf_compute, sync), "rlhf_compute", err);
    if (st != RLHF_OK) return rlhf__error_context(err, "compute backend '%s'", c->path);
    t->size = sizeof *t; // what a shorter one lacks reads NULL
    if (lacking(t))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "compute backend '%s' has no %s, which every backend must have", c->path,
                          lacking(t));
    if (t->flags & ~(uint32_t)RLHF_COMPUTE_KNOWN)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "compute backend '%s' sets bit %d of the flags of its table, which this "
                          "host does not know",
                          c->path, rlhf__lowest_bit(t->flags & ~(uint32_t)RLHF_COMPUTE_KNOWN));
    c->table = t;
    return RLHF_OK;
}

rlhf_status rlhf__compute_open(const struct rlhf__compute_spec *spec, struct rlhf__compute **out,
                               struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__compute *c = calloc(1, sizeof *c);
    if (!c) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory opening a compute backend");
    rlhf_status st = find(spec, c->path, err);
    shorten_spinning();
    if (st == RLHF_OK) st = rlhf__sha256_file(c->path, c->sha256, err);
    if (st == RLHF_OK) st = load_entry(c, err);
    if (st == RLHF_OK) {
        char text[512] = "";
        const rlhf_kernels_options o = {.size = sizeof o,
                                        .threads = spec->threads,
                                        .workspace_bytes = spec->workspace_bytes,
                                        .guard = spec->guard};
        struct rlhf__running before = rlhf__running_begin("compute backend", c->path, "create()");
        st = c->kernels.create(&o, &c->made, text, sizeof text);
        rlhf__running_end(&before);
        if (st != RLHF_OK)
            rlhf__fail(err, st, "compute backend '%s': %s", spec->backend,
                       text[0] ? text : rlhf__status_text(st));
        else
            st = read_table(c, err);
    }
    if (st != RLHF_OK) {
        rlhf__compute_close(c);
        return st;
    }
    *out = c;
    return RLHF_OK;
}

void rlhf__compute_close(struct rlhf__compute *c) {
    if (!c) return;
    if (c->made) c->kernels.destroy(c->made);
    free(c);
}

int32_t rlhf__compute_dtype(const rlhf_compute *t, const char *configured) {
    if (strcmp(configured, "f32") == 0) return RLHF_F32;
    if (strcmp(configured, "bf16") == 0) return RLHF_BF16;
    return t->dtypes & (1u << RLHF_BF16) ? RLHF_BF16 : RLHF_F32;
}

rlhf_status rlhf__compute_fail(const rlhf_compute *t, rlhf_status st, const char *what,
                               struct rlhf__error *err) {
    const char *text = t->last_error(t->ctx);
    return rlhf__fail(err, st, "%s: %s", what, text && *text ? text : rlhf__status_text(st));
}

// Best of repeated products of `rows` rows within `budget` seconds; 0 on failure.
static double best_product(const rlhf_compute *t, int32_t dtype, int32_t dim, uint32_t rows,
                           double budget) {
    uint64_t size = rlhf_dtype_size(dtype);
    if (!RLHF_COMPUTE_HAS(t, linear)) return 0;
    rlhf_dev src = NULL, x = NULL, y = NULL;
    rlhf_weight *w = NULL;
    double best = 0;
    if (t->alloc(t->ctx, (uint64_t)dim * (uint64_t)dim * 4, &src) == RLHF_OK &&
        t->alloc(t->ctx, (uint64_t)rows * (uint64_t)dim * size, &x) == RLHF_OK &&
        t->alloc(t->ctx, (uint64_t)rows * (uint64_t)dim * size, &y) == RLHF_OK &&
        t->weight_create(t->ctx, dim, dim, dtype, 0, &w) == RLHF_OK &&
        t->weight_pack(t->ctx, w, src) == RLHF_OK) {
        double flops = 2.0 * (double)rows * (double)dim * (double)dim, start = rlhf__seconds();
        for (int i = 0; i < 3 || rlhf__seconds() - start < budget; i++) {
            double from = rlhf__seconds();
            if (t->linear(t->ctx, y, dtype, 0, x, w, NULL, rows) != RLHF_OK ||
                t->sync(t->ctx) != RLHF_OK)
                break;
            double speed = flops / (rlhf__seconds() - from);
            if (i > 0 && speed > best) best = speed; // the first one prepares the kernel
        }
    }
    t->weight_destroy(t->ctx, w);
    t->release(t->ctx, src);
    t->release(t->ctx, x);
    t->release(t->ctx, y);
    return best;
}

double rlhf__compute_peak(const rlhf_compute *t, int32_t dtype) {
    double small = best_product(t, dtype, 256, 32, 0.002);
    if (small < 2e10) return small; // a naive backend: a large product would take seconds
    return best_product(t, dtype, 1024, 1024, 0.05);
}
