// safetensors_header.c: see safetensors_header.h. The header is not trusted, so every number is
// checked against the file's size before use.
#include "weights/safetensors_header.h"

#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Reads a non-negative integer of the header.
static int to_u64(const json_t *v, uint64_t *out) {
    if (!json_is_integer(v) || json_integer_value(v) < 0) return 0;
    *out = (uint64_t)json_integer_value(v);
    return 1;
}

static rlhf_status read_shape(struct rlhf__tensor *t, const json_t *shape,
                              struct rlhf__error *err) {
    size_t ndim = json_array_size(shape);
    if (!json_is_array(shape))
        return rlhf__fail(err, RLHF_E_INVALID, "tensor '%s': shape is %s, expected an array",
                          t->name, rlhf__json_kind(shape));
    if (ndim > RLHF__TENSOR_MAX_DIMS)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "tensor '%s' has %zu dimensions; allowed: %d",
                          t->name, ndim, RLHF__TENSOR_MAX_DIMS);
    t->ndim = (int32_t)ndim;
    t->count = 1;
    for (size_t i = 0; i < ndim; i++) {
        uint64_t d;
        if (!to_u64(json_array_get(shape, i), &d))
            return rlhf__fail(err, RLHF_E_INVALID,
                              "tensor '%s': dimension %zu of its shape is not a non-negative "
                              "integer",
                              t->name, i);
        t->shape[i] = (int64_t)d;
        if (__builtin_mul_overflow(t->count, t->shape[i], &t->count))
            return rlhf__fail(err, RLHF_E_INVALID, "tensor '%s': its shape is too large", t->name);
    }
    if (__builtin_mul_overflow((uint64_t)t->count, rlhf__tensor_dtype_size(t->dtype), &t->n_bytes))
        return rlhf__fail(err, RLHF_E_INVALID, "tensor '%s': its shape is too large", t->name);
    return RLHF_OK;
}

// Reads one entry: {"dtype", "shape", "data_offsets"}. data[0..len) are the bytes after the header.
static rlhf_status read_entry(struct rlhf__tensor *t, const json_t *entry, const uint8_t *data,
                              uint64_t len, struct rlhf__error *err) {
    if (!json_is_object(entry))
        return rlhf__fail(err, RLHF_E_INVALID, "tensor '%s' is %s, expected an object", t->name,
                          rlhf__json_kind(entry));
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    if (!dtype)
        return rlhf__fail(err, RLHF_E_INVALID, "tensor '%s': dtype is missing or not a string",
                          t->name);
    t->dtype = rlhf__tensor_dtype_find(dtype);
    if (t->dtype < 0)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "tensor '%s': the dtype '%.40s' is unknown",
                          t->name, dtype);
    RLHF_TRY(read_shape(t, json_object_get(entry, "shape"), err));
    const json_t *offsets = json_object_get(entry, "data_offsets");
    uint64_t begin, end;
    if (json_array_size(offsets) != 2 || !to_u64(json_array_get(offsets, 0), &begin) ||
        !to_u64(json_array_get(offsets, 1), &end))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "tensor '%s': data_offsets must be two non-negative integers", t->name);
    if (begin > end || end > len)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "tensor '%s': data_offsets [%llu, %llu] lie outside the %llu bytes of "
                          "data that the file holds%s",
                          t->name, (unsigned long long)begin, (unsigned long long)end,
                          (unsigned long long)len,
                          begin <= end ? "; was all of the file copied?" : "");
    char shape[128];
    if (end - begin != t->n_bytes)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "tensor '%s': data_offsets span %llu bytes but %s %s takes %llu", t->name,
                          (unsigned long long)(end - begin), dtype,
                          rlhf__tensor_shape_text(t->shape, t->ndim, shape, sizeof shape),
                          (unsigned long long)t->n_bytes);
    t->data = data + begin;
    return RLHF_OK;
}

static int by_place(const void *a_, const void *b_) {
    const struct rlhf__tensor *a = a_, *b = b_;
    if (a->data != b->data) return a->data < b->data ? -1 : 1;
    return a->n_bytes < b->n_bytes ? -1 : a->n_bytes > b->n_bytes;
}

// Checks that the tensors fill the data without overlaps or gaps, as the format demands.
static rlhf_status check_cover(struct rlhf__tensor *t, size_t n, const uint8_t *data, uint64_t len,
                               struct rlhf__error *err) {
    if (n) qsort(t, n, sizeof *t, by_place);
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t begin = (uint64_t)(t[i].data - data);
        if (begin < at)
            return rlhf__fail(err, RLHF_E_INVALID, "tensors '%s' and '%s' overlap", t[i - 1].name,
                              t[i].name);
        if (begin > at)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%llu bytes before tensor '%s' belong to no tensor",
                              (unsigned long long)(begin - at), t[i].name);
        at = begin + t[i].n_bytes;
    }
    if (at != len)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the header describes %llu bytes of data but the file holds %llu",
                          (unsigned long long)at, (unsigned long long)len);
    return RLHF_OK;
}

static rlhf_status check_metadata(const json_t *meta, struct rlhf__error *err) {
    if (!meta || json_is_null(meta)) return RLHF_OK;
    if (!json_is_object(meta))
        return rlhf__fail(err, RLHF_E_INVALID, "__metadata__ is %s, expected an object",
                          rlhf__json_kind(meta));
    // Jansson can only iterate over objects through pointers without const. The entries do not
    // change.
    json_t *copy = json_copy((json_t *)(uintptr_t)meta);
    const char *key, *bad = NULL;
    json_t *value;
    json_object_foreach(copy, key, value) if (!json_is_string(value)) bad = key;
    rlhf_status st = RLHF_OK;
    if (bad) st = rlhf__fail(err, RLHF_E_INVALID, "__metadata__: '%.60s' is not a string", bad);
    json_decref(copy);
    return st;
}

static rlhf_status read_all(const char *file, json_t *header, const uint8_t *data, uint64_t len,
                            struct rlhf__tensor *t, size_t *n, struct rlhf__error *err) {
    const char *name;
    json_t *entry;
    json_object_foreach(header, name, entry) {
        if (!strcmp(name, "__metadata__")) continue;
        t[*n] = (struct rlhf__tensor){.name = name, .file = file};
        RLHF_TRY(read_entry(&t[*n], entry, data, len, err));
        ++*n;
    }
    RLHF_TRY(check_metadata(json_object_get(header, "__metadata__"), err));
    return check_cover(t, *n, data, len, err);
}

rlhf_status rlhf__safetensors_size(const uint8_t first[8], uint64_t len, uint64_t *size,
                                   struct rlhf__error *err) {
    *size = 0;
    for (int i = 7; i >= 0; i--)
        *size = (*size << 8) | first[i];
    if (*size <= RLHF__SAFETENSORS_HEADER_MAX && *size <= len - 8) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "the header is said to have %llu bytes but the file has %llu; a truncated "
                      "file or no safetensors file",
                      (unsigned long long)*size, (unsigned long long)len);
}

rlhf_status rlhf__safetensors_parse(const char *file, const char *text, uint64_t size,
                                    const uint8_t *data, uint64_t len, json_t **header,
                                    struct rlhf__tensor **tensors, size_t *n,
                                    struct rlhf__error *err) {
    *header = NULL;
    *tensors = NULL;
    *n = 0;
    RLHF_TRY(rlhf__json_parse_foreign("header", text, (size_t)size, header, err));
    rlhf_status st = RLHF_OK;
    if (!json_is_object(*header))
        st = rlhf__fail(err, RLHF_E_INVALID, "the header is %s, expected an object",
                        rlhf__json_kind(*header));
    if (st == RLHF_OK) {
        *tensors = calloc(json_object_size(*header) + 1, sizeof **tensors);
        st = *tensors ? read_all(file, *header, data, len, *tensors, n, err)
                      : rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the header");
    }
    if (st < 0) {
        free(*tensors);
        json_decref(*header);
        *tensors = NULL;
        *header = NULL;
        *n = 0;
    }
    return st;
}
