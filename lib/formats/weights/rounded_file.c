// rounded_file.c: see rounded_file.h.
#include "weights/rounded_file.h"

#include "weights/rounding.h"
#include "weights/safetensors_writer.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 16 }; // elements converted at a time

int32_t rlhf__rounded_dtype(const struct rlhf__tensor *t, int32_t dtype) {
    return dtype >= 0 && rlhf__tensor_is_float(t->dtype) ? dtype : t->dtype;
}

static rlhf_status put_rounded(const struct rlhf__rounded_file *f, const struct rlhf__tensor *t,
                               struct rlhf__weights_writer *w, float *floats, void *bytes,
                               struct rlhf__error *err) {
    const int32_t dtype = rlhf__rounded_dtype(t, f->dtype);
    for (int64_t at = 0; at < t->count; at += CHUNK) {
        const size_t n = (size_t)(t->count - at < CHUNK ? t->count - at : CHUNK);
        const struct rlhf__rounding from = {t->file, t->name, at};
        if (f->cancelled && *f->cancelled) return rlhf__fail(err, RLHF_E_CANCELLED, "stopped");
        RLHF_TRY(rlhf__tensor_read_f32(t, at, (int64_t)n, floats, err));
        RLHF_TRY(rlhf__round_f32(floats, n, dtype, bytes, &from, err));
        RLHF_TRY(rlhf__weights_put_bytes(w, bytes, n * rlhf__tensor_dtype_size(dtype), err));
    }
    return RLHF_OK;
}

static rlhf_status put_copied(const struct rlhf__tensor *t, struct rlhf__weights_writer *w,
                              struct rlhf__error *err) {
    void *bytes = malloc((size_t)t->n_bytes + 1);
    if (!bytes) return RLHF__NOMEM(err, "out of memory copying %s", t->name);
    rlhf_status st = rlhf__tensor_read_bytes(t, bytes, err);
    if (st == RLHF_OK) st = rlhf__weights_put_bytes(w, bytes, (size_t)t->n_bytes, err);
    free(bytes);
    return st;
}

// order: [f->n], as the file has them.
static rlhf_status put_tensors(const struct rlhf__rounded_file *f,
                               const struct rlhf__tensor *const *order,
                               struct rlhf__weights_writer *w, struct rlhf__error *err) {
    float *floats = malloc(CHUNK * sizeof *floats);
    uint32_t *bytes = malloc(CHUNK * sizeof *bytes);
    rlhf_status st = RLHF_OK;
    if (!floats || !bytes) st = RLHF__NOMEM(err, "out of memory writing weights");
    for (size_t i = 0; st == RLHF_OK && i < f->n; i++)
        st = rlhf__tensor_is_float(order[i]->dtype)
                 ? put_rounded(f, order[i], w, floats, bytes, err)
                 : put_copied(order[i], w, err);
    free(floats);
    free(bytes);
    return st;
}

// A stable order by the size of an element.
static void put_in_order(const struct rlhf__rounded_file *f, const struct rlhf__tensor **order,
                         struct rlhf__tensor_spec *spec) {
    size_t n = 0;
    for (uint64_t size = 8; size > 0; size /= 2)
        for (size_t i = 0; i < f->n; i++) {
            const struct rlhf__tensor *t = f->tensor[i];
            const int32_t dtype = rlhf__rounded_dtype(t, f->dtype);
            if (rlhf__tensor_dtype_size(dtype) != size) continue;
            spec[n] = (struct rlhf__tensor_spec){
                .name = f->name ? f->name[i] : t->name, .dtype = dtype, .ndim = t->ndim};
            memcpy(spec[n].shape, t->shape, sizeof t->shape);
            order[n++] = t;
        }
}

rlhf_status rlhf__rounded_write(const struct rlhf__rounded_file *f, const struct rlhf__folder *in,
                                const char *name, struct rlhf__error *err) {
    for (size_t i = 0; i < f->n; i++)
        if (f->tensor[i]->dtype == RLHF__TENSOR_F64)
            RLHF_TRY(rlhf__tensor_check_float(f->tensor[i], err));
    const struct rlhf__tensor **order = calloc(f->n + 1, sizeof *order);
    struct rlhf__tensor_spec *spec = calloc(f->n + 1, sizeof *spec);
    struct rlhf__weights_writer *w = NULL;
    rlhf_status st = RLHF_OK;
    if (!order || !spec) st = RLHF__NOMEM(err, "out of memory writing %s", name);
    if (st == RLHF_OK) {
        put_in_order(f, order, spec);
        st = rlhf__weights_create(in, name, spec, f->n, NULL, 0, &w, err);
    }
    if (st == RLHF_OK) st = put_tensors(f, order, w, err);
    if (st == RLHF_OK)
        st = rlhf__weights_commit(w, err);
    else
        rlhf__weights_abort(w);
    free(order);
    free(spec);
    return st;
}
