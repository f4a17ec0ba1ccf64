// rounding.c: see rounding.h. If the weights are divided into several files, each file gets
// consecutive tensors of the list.
#include "weights/rounding.h"

#include "base/json.h"
#include "weights/safetensors_writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static rlhf_status too_large(const struct rlhf__rounding *from, int64_t at, float x, int32_t dtype,
                             struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s: element %lld of tensor %s is %.9g, which is more than %s holds (%s); "
                      "choose %s",
                      from->file, (long long)at, from->tensor, (double)x,
                      dtype == RLHF__TENSOR_F16 ? "f16" : "bf16",
                      dtype == RLHF__TENSOR_F16 ? "65504" : "3.39e38",
                      dtype == RLHF__TENSOR_F16 ? "bf16 or f32" : "f32");
}

// Rounds blocks of 32 numbers as ggml does: the scale is the largest magnitude over 127, in f16,
// and a number becomes x times the inverse of the unrounded scale, rounded to the nearest integer.
static rlhf_status round_q8_0(const float *in, size_t n, uint8_t *out,
                              const struct rlhf__rounding *from, struct rlhf__error *err) {
    enum { BLOCK = 32, BYTES = 34 };
    for (size_t at = 0; at < n; at += BLOCK, out += BYTES) {
        float most = 0;
        size_t where = 0;
        for (size_t i = 0; i < BLOCK; i++)
            if (!(fabsf(in[at + i]) <= most)) { // also a NaN
                most = fabsf(in[at + i]);
                where = i;
                if (!isfinite(most)) break;
            }
        const float scale = most / 127, inverse = scale > 0 ? 1 / scale : 0;
        const uint16_t half = rlhf__f32_to_f16(scale);
        const int64_t element = from->first + (int64_t)(at + where);
        if (!isfinite(most) || half == 0x7C00)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s: element %lld of tensor %s is %.9g, which q8_0 cannot hold; "
                              "choose f32",
                              from->file, (long long)element, from->tensor, (double)in[at + where]);
        out[0] = (uint8_t)half;
        out[1] = (uint8_t)(half >> 8);
        for (size_t i = 0; i < BLOCK;
             i++) // an infinite inverse belongs to a scale that is 0 in f16
            out[2 + i] = (uint8_t)(int8_t)(isfinite(inverse) ? roundf(in[at + i] * inverse) : 0);
    }
    return RLHF_OK;
}

rlhf_status rlhf__round_f32(const float *in, size_t n, int32_t dtype, void *out,
                            const struct rlhf__rounding *from, struct rlhf__error *err) {
    if (dtype == RLHF__TENSOR_Q8_0) return round_q8_0(in, n, out, from, err);
    if (dtype == RLHF__TENSOR_F32) {
        if (n) memcpy(out, in, n * sizeof *in); // files and hosts are little-endian
        return RLHF_OK;
    }
    const int half = dtype == RLHF__TENSOR_F16;
    const uint16_t infinity = half ? 0x7C00 : 0x7F80;
    uint16_t *to = out;
    for (size_t i = 0; i < n; i++) {
        to[i] = half ? rlhf__f32_to_f16(in[i]) : rlhf__f32_to_bf16(in[i]);
        if ((to[i] & 0x7FFF) == infinity && isfinite(in[i]))
            return too_large(from, from->first + (int64_t)i, in[i], dtype, err);
    }
    return RLHF_OK;
}

// ---- one file ----

enum { CHUNK = 1 << 16 }; // number of elements converted at a time

// Returns the dtype in which tensor t is written. If `dtype` is -1 or t cannot be read as floats,
// this is t's own dtype, or F32 if that is quantised; otherwise `dtype`.
static int32_t rounded_dtype(const struct rlhf__tensor *t, int32_t dtype) {
    if (dtype < 0 && rlhf__tensor_dtype_block(t->dtype) > 1) return RLHF__TENSOR_F32;
    return dtype >= 0 && rlhf__tensor_is_float(t->dtype) ? dtype : t->dtype;
}

static rlhf_status put_rounded(const struct rlhf__rounded_file *f, const struct rlhf__tensor *t,
                               struct rlhf__weights_writer *w, float *floats, void *bytes,
                               struct rlhf__error *err) {
    const int32_t dtype = rounded_dtype(t, f->dtype);
    RLHF_TRY(rlhf__tensor_check_scales(t, err));
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

// Writes the tensors. order[f->n] is their order in the file.
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

// Sorts the tensors by the size of their elements, the largest first. The sort is stable.
static void put_in_order(const struct rlhf__rounded_file *f, const struct rlhf__tensor **order,
                         struct rlhf__tensor_spec *spec) {
    size_t n = 0;
    for (uint64_t size = 8; size > 0; size /= 2)
        for (size_t i = 0; i < f->n; i++) {
            const struct rlhf__tensor *t = f->tensor[i];
            const int32_t dtype = rounded_dtype(t, f->dtype);
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
        st = rlhf__weights_writer_open(in, name, spec, f->n, NULL, 0, &w, err);
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

// ---- shards ----

static uint64_t bytes_of(const struct rlhf__file_shards *s, const struct rlhf__tensor *t) {
    return (uint64_t)t->count * rlhf__tensor_dtype_size(rounded_dtype(t, s->dtype));
}

// Sets end[k] to the end of file k in the list of tensors. Returns the number of files.
static size_t divide(const struct rlhf__file_shards *s, size_t *end) {
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

static void shard_name(size_t k, size_t n, char out[64]) {
    if (n == 1)
        snprintf(out, 64, "model.safetensors");
    else
        snprintf(out, 64, "model-%05zu-of-%05zu.safetensors", k + 1, n);
}

static rlhf_status write_index(const struct rlhf__file_shards *s, const struct rlhf__folder *dir,
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

rlhf_status rlhf__shards_write(const struct rlhf__file_shards *s, const struct rlhf__folder *dir,
                               struct rlhf__shards_done *done, struct rlhf__error *err) {
    for (size_t i = 0; i < s->n; i++) // integers are copied; F64 would have to be rounded
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
        const size_t begin = k ? end[k - 1] : 0;
        const struct rlhf__rounded_file file = {.tensor = s->tensor + begin,
                                                .n = end[k] - begin,
                                                .dtype = s->dtype,
                                                .cancelled = s->cancelled};
        st = rlhf__rounded_write(&file, dir, name, err);
    }
    if (st == RLHF_OK && done->n_files > 1) st = write_index(s, dir, end, done, err);
    free(end);
    return st;
}
