// shards.c: see shards.h. Tensors keep their order over the files; within a file wide dtypes come
// first, as the format's alignment asks.
#include "weights/shards.h"

#include "base/json.h"
#include "weights/rounding.h"
#include "weights/safetensors_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 16 }; // elements converted at a time

static int32_t dtype_of(const struct rlhf__shards *s, const struct rlhf__tensor *t) {
    return s->dtype >= 0 && rlhf__tensor_is_float(t->dtype) ? s->dtype : t->dtype;
}

static uint64_t bytes_of(const struct rlhf__shards *s, const struct rlhf__tensor *t) {
    return (uint64_t)t->count * rlhf__tensor_dtype_size(dtype_of(s, t));
}

// end[k] = where file k ends in the list of tensors; returns how many files there are.
static size_t divide(const struct rlhf__shards *s, size_t *end) {
    size_t n = 0;
    uint64_t used = 0;
    for (size_t i = 0; i < s->n; i++) {
        const uint64_t bytes = bytes_of(s, s->tensor[i]);
        if (used > 0 && (bytes > s->limit || used > s->limit - bytes)) {
            end[n++] = i;
            used = 0;
        }
        used += bytes;
    }
    end[n++] = s->n;
    return n;
}

static rlhf_status put_rounded(const struct rlhf__shards *s, const struct rlhf__tensor *t,
                               struct rlhf__weights_writer *w, float *floats, void *bytes,
                               struct rlhf__error *err) {
    const int32_t dtype = dtype_of(s, t);
    for (int64_t at = 0; at < t->count; at += CHUNK) {
        const size_t n = (size_t)(t->count - at < CHUNK ? t->count - at : CHUNK);
        const struct rlhf__rounding from = {t->file, t->name, at};
        if (s->cancelled && *s->cancelled) return rlhf__fail(err, RLHF_E_CANCELLED, "stopped");
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

static rlhf_status put_tensors(const struct rlhf__shards *s,
                               const struct rlhf__tensor *const *tensor, size_t n,
                               struct rlhf__weights_writer *w, struct rlhf__error *err) {
    float *floats = malloc(CHUNK * sizeof *floats);
    uint32_t *bytes = malloc(CHUNK * sizeof *bytes);
    rlhf_status st = RLHF_OK;
    if (!floats || !bytes) st = RLHF__NOMEM(err, "out of memory writing weights");
    for (size_t i = 0; st == RLHF_OK && i < n; i++)
        st = rlhf__tensor_is_float(tensor[i]->dtype)
                 ? put_rounded(s, tensor[i], w, floats, bytes, err)
                 : put_copied(tensor[i], w, err);
    free(floats);
    free(bytes);
    return st;
}

// The tensors of one file, wide dtypes first: a stable order by the size of an element.
static size_t in_order(const struct rlhf__shards *s, size_t begin, size_t end,
                       const struct rlhf__tensor **tensor, struct rlhf__tensor_spec *spec) {
    size_t n = 0;
    for (uint64_t size = 8; size > 0; size /= 2)
        for (size_t i = begin; i < end; i++) {
            const struct rlhf__tensor *t = s->tensor[i];
            const int32_t dtype = dtype_of(s, t);
            if (rlhf__tensor_dtype_size(dtype) != size) continue;
            spec[n] = (struct rlhf__tensor_spec){.name = t->name, .dtype = dtype, .ndim = t->ndim};
            memcpy(spec[n].shape, t->shape, sizeof t->shape);
            tensor[n++] = t;
        }
    return n;
}

static rlhf_status write_file(const struct rlhf__shards *s, const struct rlhf__folder *dir,
                              const char *name, size_t begin, size_t end, struct rlhf__error *err) {
    const struct rlhf__tensor **tensor = calloc(end - begin + 1, sizeof *tensor);
    struct rlhf__tensor_spec *spec = calloc(end - begin + 1, sizeof *spec);
    struct rlhf__weights_writer *w = NULL;
    rlhf_status st = RLHF_OK;
    if (!tensor || !spec) st = RLHF__NOMEM(err, "out of memory writing %s", name);
    if (st == RLHF_OK) {
        const size_t n = in_order(s, begin, end, tensor, spec);
        st = rlhf__weights_create(dir, name, spec, n, NULL, 0, &w, err);
        if (st == RLHF_OK) st = put_tensors(s, tensor, n, w, err);
    }
    if (st == RLHF_OK)
        st = rlhf__weights_commit(w, err);
    else
        rlhf__weights_abort(w);
    free(tensor);
    free(spec);
    return st;
}

static void shard_name(size_t k, size_t n, char out[64]) {
    if (n == 1)
        snprintf(out, 64, "model.safetensors");
    else
        snprintf(out, 64, "model-%05zu-of-%05zu.safetensors", k + 1, n);
}

static rlhf_status write_index(const struct rlhf__shards *s, const struct rlhf__folder *dir,
                               const size_t *end, const struct rlhf__shards_done *done,
                               struct rlhf__error *err) {
    json_t *map = json_object();
    char name[64];
    for (size_t k = 0, i = 0; k < done->n_files; k++)
        for (shard_name(k, done->n_files, name); i < end[k]; i++)
            json_object_set_new(map, s->tensor[i]->name, json_string(name));
    return rlhf__json_save_new(dir, "model.safetensors.index.json",
                               json_pack("{s:{s:I, s:I}, s:o}", "metadata", "total_parameters",
                                         (json_int_t)done->n_parameters, "total_size",
                                         (json_int_t)done->n_bytes, "weight_map", map),
                               2, err);
}

rlhf_status rlhf__shards_write(const struct rlhf__shards *s, const struct rlhf__folder *dir,
                               struct rlhf__shards_done *done, struct rlhf__error *err) {
    for (size_t i = 0; i < s->n; i++) // whole numbers are copied, these would have to be rounded
        if (s->tensor[i]->dtype == RLHF__TENSOR_F64)
            RLHF_TRY(rlhf__tensor_check_float(s->tensor[i], err));
    size_t *end = malloc((s->n + 1) * sizeof *end);
    char name[64];
    rlhf_status st = RLHF_OK;
    *done = (struct rlhf__shards_done){0};
    if (!end) return RLHF__NOMEM(err, "out of memory for the list of weight files");
    done->n_files = divide(s, end);
    for (size_t i = 0; i < s->n; i++) {
        done->n_bytes += bytes_of(s, s->tensor[i]);
        done->n_parameters += rlhf__tensor_is_float(s->tensor[i]->dtype) ? s->tensor[i]->count : 0;
    }
    for (size_t k = 0; st == RLHF_OK && k < done->n_files; k++) {
        shard_name(k, done->n_files, name);
        st = write_file(s, dir, name, k ? end[k - 1] : 0, end[k], err);
    }
    if (st == RLHF_OK && done->n_files > 1) st = write_index(s, dir, end, done, err);
    free(end);
    return st;
}
