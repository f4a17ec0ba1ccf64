// gguf_values.c: see gguf_values.h.
#include "tensors/gguf_values.h"

#include "base/decimal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KEYS = 65536, MAX_KEY = 65535 };

struct rlhf__gguf_value {
    const struct rlhf__gguf_head *in;
    const char *key;
    int32_t type, item_type; // item_type: of an array
    uint64_t n;              // bytes of a string, elements of an array
    uint64_t at;             // offset in the head of the number, the text or the first element
    uint64_t *item;          // [n] offsets of the strings of an array, else NULL
};

// ---- types ----

static const struct {
    const char *name;
    uint64_t width; // 0: strings and arrays
} types[RLHF__N_GGUF_TYPES] = {
    {"an 8-bit integer", 1}, {"an 8-bit integer", 1}, {"a 16-bit integer", 2},
    {"a 16-bit integer", 2}, {"a 32-bit integer", 4}, {"a 32-bit integer", 4},
    {"a 32-bit number", 4},  {"a boolean", 1},        {"a string", 0},
    {"an array", 0},         {"a 64-bit integer", 8}, {"a 64-bit integer", 8},
    {"a 64-bit number", 8},
};

static int is_integer(int32_t type) {
    return type <= RLHF__GGUF_I32 || type == RLHF__GGUF_U64 || type == RLHF__GGUF_I64;
}

static int is_number(int32_t type) {
    return is_integer(type) || type == RLHF__GGUF_F32 || type == RLHF__GGUF_F64;
}

// ---- keys ----

static rlhf_status take_strings(struct rlhf__gguf_head *f, struct rlhf__gguf_value *v,
                                struct rlhf__error *err) {
    if (v->n > (f->file.len - f->at) / 8)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the key %s has %llu strings, more than the file has room for", v->key,
                          (unsigned long long)v->n);
    v->item = calloc((size_t)v->n + 1, sizeof *v->item);
    if (!v->item) return RLHF__NOMEM(err, "out of memory for the key %s", v->key);
    for (uint64_t i = 0; i < v->n; i++) {
        uint64_t n = 0;
        v->item[i] = f->at;
        RLHF_TRY(rlhf__gguf_take_u64(f, "the key", v->key, &n, err));
        RLHF_TRY(rlhf__gguf_need(f, n, "a string of the key", v->key, err));
        f->at += n;
    }
    return RLHF_OK;
}

static rlhf_status take_array(struct rlhf__gguf_head *f, struct rlhf__gguf_value *v,
                              struct rlhf__error *err) {
    uint32_t type = 0;
    RLHF_TRY(rlhf__gguf_take_u32(f, "the key", v->key, &type, err));
    RLHF_TRY(rlhf__gguf_take_u64(f, "the key", v->key, &v->n, err));
    v->item_type = (int32_t)type;
    v->at = f->at;
    if (type == RLHF__GGUF_ARRAY)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "the key %s is an array of arrays, which is not read", v->key);
    if (type >= RLHF__N_GGUF_TYPES)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the key %s is an array of type %lu; allowed: 0 to %d", v->key,
                          (unsigned long)type, RLHF__N_GGUF_TYPES - 1);
    if (type == RLHF__GGUF_STR) return take_strings(f, v, err);
    uint64_t bytes;
    if (__builtin_mul_overflow(v->n, types[type].width, &bytes))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the key %s has %llu elements, more than the file has room for", v->key,
                          (unsigned long long)v->n);
    RLHF_TRY(rlhf__gguf_need(f, bytes, "the key", v->key, err));
    f->at += bytes;
    return RLHF_OK;
}

static rlhf_status take_value(struct rlhf__gguf_head *f, size_t i, struct rlhf__gguf_value *v,
                              struct rlhf__error *err) {
    uint32_t type = 0;
    char *key = NULL;
    const rlhf_status st = rlhf__gguf_take_name(f, "key", i, MAX_KEY, &key, err);
    if (st != RLHF_OK || !key) return st;
    v->in = f;
    v->key = key;
    RLHF_TRY(rlhf__gguf_take_u32(f, "the key", key, &type, err));
    if (type >= RLHF__N_GGUF_TYPES)
        return rlhf__fail(err, RLHF_E_INVALID, "the key %s is of type %lu; allowed: 0 to %d", key,
                          (unsigned long)type, RLHF__N_GGUF_TYPES - 1);
    v->type = (int32_t)type;
    if (v->type == RLHF__GGUF_ARRAY) return take_array(f, v, err);
    v->n = types[type].width;
    if (v->type == RLHF__GGUF_STR) RLHF_TRY(rlhf__gguf_take_u64(f, "the key", key, &v->n, err));
    RLHF_TRY(rlhf__gguf_need(f, v->n, "the key", key, err));
    v->at = f->at;
    f->at += v->n;
    if (v->type == RLHF__GGUF_BOOL && f->bytes[v->at] > 1)
        return rlhf__fail(err, RLHF_E_INVALID, "the key %s is a boolean of %d; allowed: 0 and 1",
                          key, f->bytes[v->at]);
    return RLHF_OK;
}

static int by_key(const void *a, const void *b) {
    return strcmp(((const struct rlhf__gguf_value *)a)->key,
                  ((const struct rlhf__gguf_value *)b)->key);
}

rlhf_status rlhf__gguf_take_keys(struct rlhf__gguf_head *f, uint64_t n, struct rlhf__error *err) {
    if (n > MAX_KEYS)
        return rlhf__fail(err, RLHF_E_INVALID, "the file is said to have %llu keys; at most %d",
                          (unsigned long long)n, MAX_KEYS);
    f->value = calloc((size_t)n + 1, sizeof *f->value);
    if (!f->value) return RLHF__NOMEM(err, "out of memory for the keys");
    for (size_t i = 0; i < (size_t)n; i++) {
        f->n_values++;
        RLHF_TRY(take_value(f, i, &f->value[i], err));
    }
    if (n) qsort(f->value, (size_t)n, sizeof *f->value, by_key);
    for (size_t i = 1; i < (size_t)n; i++)
        if (by_key(&f->value[i - 1], &f->value[i]) == 0)
            return rlhf__fail(err, RLHF_E_INVALID, "the key %s occurs twice", f->value[i].key);
    return RLHF_OK;
}

void rlhf__gguf_head_finish(struct rlhf__gguf_head *f) {
    for (size_t i = 0; i < f->n_values; i++) {
        free((void *)(uintptr_t)f->value[i].key);
        free(f->value[i].item);
    }
    free(f->value);
    free(f->bytes);
    rlhf__mapped_close(&f->file);
    *f = (struct rlhf__gguf_head){0};
}

// ---- values ----

const struct rlhf__gguf_value *rlhf__gguf_head_find(const struct rlhf__gguf_head *f,
                                                    const char *key) {
    const struct rlhf__gguf_value wanted = {.key = key};
    return f->n_values ? bsearch(&wanted, f->value, f->n_values, sizeof wanted, by_key) : NULL;
}

int32_t rlhf__gguf_value_type(const struct rlhf__gguf_value *v) { return v->type; }

// Set `err` to: file: the key is `found`, expected `wanted`.
static rlhf_status wrong(const struct rlhf__gguf_value *v, const char *found, const char *wanted,
                         struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_INVALID, "%s: the key %s is %s, expected %s", v->in->file.path,
                      v->key, found, wanted);
}

// The integer of a type at an offset of the head.
static int64_t int_at(const struct rlhf__gguf_head *f, int32_t type, uint64_t at) {
    const uint8_t *p = f->bytes + at;
    uint16_t half = 0;
    if (types[type].width == sizeof half) memcpy(&half, p, sizeof half);
    if (type == RLHF__GGUF_U8 || type == RLHF__GGUF_BOOL) return *p;
    if (type == RLHF__GGUF_I8) return (int8_t)*p;
    if (type == RLHF__GGUF_U16) return half;
    if (type == RLHF__GGUF_I16) return (int16_t)half;
    if (type == RLHF__GGUF_U32) return rlhf__gguf_u32_at(f, at);
    if (type == RLHF__GGUF_I32) return (int32_t)rlhf__gguf_u32_at(f, at);
    return (int64_t)rlhf__gguf_u64_at(f, at);
}

static double num_at(const struct rlhf__gguf_head *f, int32_t type, uint64_t at) {
    float narrow;
    double wide;
    if (type == RLHF__GGUF_F32) {
        memcpy(&narrow, f->bytes + at, sizeof narrow);
        return (double)narrow;
    }
    if (type == RLHF__GGUF_F64) {
        memcpy(&wide, f->bytes + at, sizeof wide);
        return wide;
    }
    if (type == RLHF__GGUF_U64) return (double)rlhf__gguf_u64_at(f, at);
    return (double)int_at(f, type, at);
}

rlhf_status rlhf__gguf_value_str(const struct rlhf__gguf_value *v, const char **text, size_t *len,
                                 struct rlhf__error *err) {
    if (v->type != RLHF__GGUF_STR) return wrong(v, types[v->type].name, "a string", err);
    *text = (const char *)v->in->bytes + v->at;
    *len = (size_t)v->n;
    return RLHF_OK;
}

rlhf_status rlhf__gguf_value_int(const struct rlhf__gguf_value *v, int64_t min, int64_t max,
                                 int64_t *out, struct rlhf__error *err) {
    char found[64], wanted[96];
    snprintf(wanted, sizeof wanted, "an integer from %lld to %lld", (long long)min, (long long)max);
    if (!is_integer(v->type)) return wrong(v, types[v->type].name, wanted, err);
    const int64_t n = int_at(v->in, v->type, v->at);
    const int huge = v->type == RLHF__GGUF_U64 && n < 0; // above INT64_MAX
    if (n >= min && n <= max && !huge) {
        *out = n;
        return RLHF_OK;
    }
    if (huge)
        snprintf(found, sizeof found, "%llu", (unsigned long long)n);
    else
        snprintf(found, sizeof found, "%lld", (long long)n);
    return wrong(v, found, wanted, err);
}

rlhf_status rlhf__gguf_value_num(const struct rlhf__gguf_value *v, double *out,
                                 struct rlhf__error *err) {
    if (!is_number(v->type)) return wrong(v, types[v->type].name, "a number", err);
    *out = num_at(v->in, v->type, v->at);
    if (!isfinite(*out)) return wrong(v, "infinite or NaN", "a number", err);
    char text[40];
    if (v->type == RLHF__GGUF_F32) *out = strtod(rlhf__format_float((float)*out, text), NULL);
    return RLHF_OK;
}

rlhf_status rlhf__gguf_value_bool(const struct rlhf__gguf_value *v, int *out,
                                  struct rlhf__error *err) {
    if (v->type != RLHF__GGUF_BOOL) return wrong(v, types[v->type].name, "a boolean", err);
    *out = v->in->bytes[v->at];
    return RLHF_OK;
}

rlhf_status rlhf__gguf_value_count(const struct rlhf__gguf_value *v, int32_t item_type, size_t *n,
                                   struct rlhf__error *err) {
    char found[96];
    const char *wanted = item_type == RLHF__GGUF_STR   ? "an array of strings"
                         : item_type == RLHF__GGUF_I64 ? "an array of integers"
                                                       : "an array of numbers";
    if (v->type != RLHF__GGUF_ARRAY) return wrong(v, types[v->type].name, wanted, err);
    const int fits = item_type == RLHF__GGUF_I64   ? is_integer(v->item_type)
                     : item_type == RLHF__GGUF_F64 ? is_number(v->item_type)
                                                   : v->item_type == item_type;
    snprintf(found, sizeof found, "an array with %s in it", types[v->item_type].name);
    if (!fits) return wrong(v, found, wanted, err);
    *n = (size_t)v->n;
    return RLHF_OK;
}

const char *rlhf__gguf_item_text(const struct rlhf__gguf_value *v, size_t i, size_t *len) {
    *len = (size_t)rlhf__gguf_u64_at(v->in, v->item[i]);
    return (const char *)v->in->bytes + v->item[i] + 8;
}

int64_t rlhf__gguf_item_int(const struct rlhf__gguf_value *v, size_t i) {
    return int_at(v->in, v->item_type, v->at + i * types[v->item_type].width);
}

double rlhf__gguf_item_num(const struct rlhf__gguf_value *v, size_t i) {
    return num_at(v->in, v->item_type, v->at + i * types[v->item_type].width);
}
