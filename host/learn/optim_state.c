// optim_state.c: see optim_state.h.
#include "learn/optim_state.h"

#include "base/json.h"
#include "model/compute.h"
#include "model/parameters.h"
#include "weights/safetensors.h"
#include "weights/safetensors_writer.h"

#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 320

// ---- counters ----

json_t *rlhf__optim_count_save(const struct rlhf__optim_count *c) {
    return json_pack("{s:I, s:I, s:I}", "step", (json_int_t)c->step, "skipped",
                     (json_int_t)c->skipped, "skipped_in_a_row", (json_int_t)c->skipped_row);
}

rlhf_status rlhf__optim_count_load(struct rlhf__optim_count *c, const json_t *v,
                                   struct rlhf__error *err) {
    const struct rlhf__json_count list[] = {
        {"step", &c->step}, {"skipped", &c->skipped}, {"skipped_in_a_row", &c->skipped_row}};
    return rlhf__json_counts(v, list, sizeof list / sizeof *list, err);
}

// ---- tensors ----

static rlhf_status list_specs(const struct rlhf__optim *o, struct rlhf__tensor_spec **specs,
                              char **names, size_t *n, struct rlhf__error *err) {
    *n = 0;
    *specs = calloc(2u * o->n + 1, sizeof **specs);
    *names = calloc(2u * o->n + 1, NAME_BYTES);
    if (!*specs || !*names) return RLHF__NOMEM(err, "out of memory for the optimiser's state");
    rlhf_dev dev;
    const rlhf_param *p;
    while (rlhf__optim_tensor(o, (uint32_t)*n, *names + *n * NAME_BYTES, NAME_BYTES, &dev, &p) ==
           RLHF_OK) {
        struct rlhf__tensor_spec *s = &(*specs)[*n];
        s->name = *names + *n * NAME_BYTES;
        s->dtype = RLHF__TENSOR_F32;
        s->ndim = p->ndim;
        memcpy(s->shape, p->shape, sizeof p->shape);
        ++*n;
    }
    return RLHF_OK;
}

// One tensor of the state; `host` is a buffer of RLHF__PARAM_CHUNK numbers.
struct tensor {
    const rlhf_compute *compute;
    const struct rlhf__instance *kernels;
    char name[NAME_BYTES];
    rlhf_dev dev;
    size_t count; // elements
    float *host;
};

static rlhf_status tensor_init(struct tensor *t, const struct rlhf__optim *o, uint32_t i,
                               struct rlhf__error *err) {
    const rlhf_param *p;
    t->compute = o->compute;
    t->kernels = o->kernels;
    rlhf__optim_tensor(o, i, t->name, sizeof t->name, &t->dev, &p);
    t->count = (size_t)rlhf__param_count(p);
    t->host = malloc(RLHF__PARAM_CHUNK * sizeof *t->host);
    return t->host ? RLHF_OK
                   : rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the state %s", t->name);
}

static rlhf_status tensor_write(const struct tensor *t, struct rlhf__weights_writer *w,
                                struct rlhf__error *err) {
    const rlhf_compute *c = t->compute;
    for (size_t at = 0, n; at < t->count; at += n) {
        n = t->count - at < RLHF__PARAM_CHUNK ? t->count - at : RLHF__PARAM_CHUNK;
        const rlhf_dev from = rlhf_dev_at(t->dev, at * sizeof *t->host);
        const rlhf_status st = c->download(c->ctx, t->host, from, n * sizeof *t->host);
        if (st != RLHF_OK) return rlhf__compute_fail(t->kernels, st, t->name, err);
        RLHF_TRY(rlhf__weights_put_f32(w, t->host, n, err));
    }
    return RLHF_OK;
}

static rlhf_status tensor_read(const struct tensor *t, const struct rlhf__tensor *from,
                               struct rlhf__error *err) {
    const rlhf_compute *c = t->compute;
    if (from->dtype != RLHF__TENSOR_F32 || (size_t)from->count != t->count)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: tensor %s does not fit the model", from->file,
                          t->name);
    for (size_t at = 0, n; at < t->count; at += n) {
        n = t->count - at < RLHF__PARAM_CHUNK ? t->count - at : RLHF__PARAM_CHUNK;
        const rlhf_dev to = rlhf_dev_at(t->dev, at * sizeof *t->host);
        RLHF_TRY(rlhf__tensor_read_f32(from, (int64_t)at, (int64_t)n, t->host, err));
        const rlhf_status st = c->upload(c->ctx, to, t->host, n * sizeof *t->host);
        if (st != RLHF_OK) return rlhf__compute_fail(t->kernels, st, t->name, err);
    }
    return RLHF_OK;
}

rlhf_status rlhf__optim_write(const struct rlhf__optim *o, const struct rlhf__folder *checkpoint,
                              const char *name, struct rlhf__error *err) {
    struct rlhf__tensor_spec *specs = NULL;
    char *names = NULL;
    size_t n = 0;
    struct rlhf__weights_writer *w = NULL;
    rlhf_status st = list_specs(o, &specs, &names, &n, err);
    if (st == RLHF_OK) st = rlhf__weights_create(checkpoint, name, specs, n, NULL, 0, &w, err);
    free(specs);
    free(names);
    if (st != RLHF_OK) return st;
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++) {
        struct tensor t;
        st = tensor_init(&t, o, i, err);
        if (st == RLHF_OK) st = tensor_write(&t, w, err);
        free(t.host);
    }
    if (st == RLHF_OK) return rlhf__weights_commit(w, err);
    rlhf__weights_abort(w);
    return st;
}

static rlhf_status read_tensor(const struct rlhf__optim *o, uint32_t i,
                               const struct rlhf__weights *file, const char *path,
                               struct rlhf__error *err) {
    struct tensor t;
    rlhf_status st = tensor_init(&t, o, i, err);
    const struct rlhf__tensor *from = rlhf__weights_find(file, t.name);
    if (st == RLHF_OK && from) st = tensor_read(&t, from, err);
    if (!from)
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "%s lacks the tensor %s: optim.kind must not change when a run is "
                        "resumed",
                        path, t.name);
    free(t.host);
    return st;
}

rlhf_status rlhf__optim_read(struct rlhf__optim *o, const char *path, struct rlhf__error *err) {
    char name[NAME_BYTES];
    rlhf_dev dev;
    const rlhf_param *p;
    struct rlhf__weights *file = NULL;
    rlhf_status st = rlhf__weights_open(path, &file, err);
    for (uint32_t i = 0; st == RLHF_OK; i++) {
        if (rlhf__optim_tensor(o, i, name, sizeof name, &dev, &p) != RLHF_OK) break;
        st = read_tensor(o, i, file, path, err);
    }
    rlhf__weights_close(file);
    return st;
}
