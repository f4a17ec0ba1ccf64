// optim_state.c: see optim_state.h.
#include "learn/optim_state.h"

#include "base/json.h"
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
    if (!*specs || !*names) return RLHF__NOMEM(err, "out of memory for the optimizer's state");
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

// Collect tensor i of the state and, if w is not NULL, write it. *file receives the result of
// writing. After a failed write, tensors are still collected, because the other processes take part
// in collecting them.
static rlhf_status write_tensor(const struct rlhf__optim *o, uint32_t i,
                                struct rlhf__weights_writer *w, float *host, rlhf_status *file,
                                struct rlhf__error *why, struct rlhf__error *err) {
    const uint64_t count = rlhf__optim_elements(o, i);
    for (uint64_t at = 0, n; at < count; at += n) {
        n = count - at < RLHF__PARAM_CHUNK ? count - at : RLHF__PARAM_CHUNK;
        RLHF_TRY(rlhf__optim_get(o, i, at, n, host, err));
        if (w && *file == RLHF_OK) *file = rlhf__weights_put_f32(w, host, n, why);
    }
    return RLHF_OK;
}

static rlhf_status read_into(struct rlhf__optim *o, uint32_t i, const char *name,
                             const struct rlhf__tensor *from, float *host,
                             struct rlhf__error *err) {
    const uint64_t count = rlhf__optim_elements(o, i);
    if (from->dtype != RLHF__TENSOR_F32 || (uint64_t)from->count != count)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: tensor %s does not fit the model", from->file,
                          name);
    for (uint64_t at = 0, n; at < count; at += n) {
        n = count - at < RLHF__PARAM_CHUNK ? count - at : RLHF__PARAM_CHUNK;
        RLHF_TRY(rlhf__tensor_read_f32(from, (int64_t)at, (int64_t)n, host, err));
        RLHF_TRY(rlhf__optim_put(o, i, at, n, host, err));
    }
    return RLHF_OK;
}

static float *chunk(struct rlhf__error *err) {
    float *host = malloc(RLHF__PARAM_CHUNK * sizeof *host);
    if (!host) rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the optimizer's state");
    return host;
}

static rlhf_status create(const struct rlhf__optim *o, const struct rlhf__folder *checkpoint,
                          const char *name, struct rlhf__weights_writer **w,
                          struct rlhf__error *err) {
    struct rlhf__tensor_spec *specs = NULL;
    char *names = NULL;
    size_t n = 0;
    rlhf_status st = list_specs(o, &specs, &names, &n, err);
    if (st == RLHF_OK) st = rlhf__weights_writer_open(checkpoint, name, specs, n, NULL, 0, w, err);
    free(specs);
    free(names);
    return st;
}

static rlhf_status write_all(const struct rlhf__optim *o, struct rlhf__weights_writer *w,
                             rlhf_status *file, struct rlhf__error *why, struct rlhf__error *err) {
    float *host = chunk(err);
    rlhf_status st = host ? RLHF_OK : RLHF_E_NOMEM;
    for (uint32_t i = 0; st == RLHF_OK && rlhf__optim_elements(o, i) > 0; i++)
        st = write_tensor(o, i, w, host, file, why, err);
    free(host);
    return st;
}

rlhf_status rlhf__optim_write(const struct rlhf__optim *o, const struct rlhf__folder *checkpoint,
                              const char *name, struct rlhf__error *err) {
    struct rlhf__weights_writer *w = NULL;
    struct rlhf__error why = {0, ""};
    rlhf_status file = create(o, checkpoint, name, &w, &why);
    const int collects = file == RLHF_OK || rlhf__optim_divided(o);
    const rlhf_status st = collects ? write_all(o, w, &file, &why, err) : RLHF_OK;
    if (st == RLHF_OK && file == RLHF_OK) return rlhf__weights_commit(w, err);
    if (w) rlhf__weights_abort(w);
    if (st != RLHF_OK) return st;
    if (err) *err = why;
    return file;
}

rlhf_status rlhf__optim_give(const struct rlhf__optim *o, struct rlhf__error *err) {
    rlhf_status file = RLHF_OK;
    if (!o || !rlhf__optim_divided(o)) return RLHF_OK;
    return write_all(o, NULL, &file, NULL, err);
}

static rlhf_status read_tensor(struct rlhf__optim *o, uint32_t i, const char *name,
                               const struct rlhf__weights *file, const char *path, float *host,
                               struct rlhf__error *err) {
    const struct rlhf__tensor *from = rlhf__weights_find(file, name);
    if (from) return read_into(o, i, name, from, host, err);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s lacks the tensor %s: optim.kind must not change when a run is "
                      "resumed",
                      path, name);
}

rlhf_status rlhf__optim_read(struct rlhf__optim *o, const char *path, struct rlhf__error *err) {
    char name[NAME_BYTES];
    rlhf_dev dev;
    const rlhf_param *p;
    struct rlhf__weights *file = NULL;
    float *host = chunk(err);
    rlhf_status st = host ? rlhf__weights_open(path, &file, err) : RLHF_E_NOMEM;
    for (uint32_t i = 0; st == RLHF_OK; i++) {
        if (rlhf__optim_tensor(o, i, name, sizeof name, &dev, &p) != RLHF_OK) break;
        st = read_tensor(o, i, name, file, path, host, err);
    }
    free(host);
    rlhf__weights_close(file);
    return st;
}
