// gguf_item.c: see gguf_item.h.
#include "gguf_write/gguf_item.h"

#include "weights/rounding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 16 }; // elements of a block, at least one row

// ---- its name and form ----

static int is_f32(const struct rlhf__tensor *t, const char *name) {
    return t->ndim < 2 || strcmp(name, "position_embd.weight") == 0;
}

// Makes two tensors of one: ffn_gate, and ffn_up with the same number of rows.
static rlhf_status split(struct rlhf__gguf_item item[2], struct rlhf__error *err) {
    struct rlhf__gguf_item *gate = &item[0], *up = &item[1];
    char *name;
    if (gate->n_rows % 2)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: tensor %s has %lld rows; its halves are gate and up projection",
                          gate->from->file, gate->from->name, (long long)gate->n_rows);
    gate->rows = RLHF__GGUF_AS_IS;
    gate->n_rows /= 2;
    *up = *gate;
    up->first = gate->n_rows;
    name = strstr(up->name, "ffn_gate");
    snprintf(name, sizeof up->name - (size_t)(name - up->name), "ffn_up.weight");
    return RLHF_OK;
}

rlhf_status rlhf__gguf_item_make(const struct rlhf__gguf_config *c, const struct rlhf__tensor *t,
                                 int32_t dtype, int lora, struct rlhf__gguf_item item[2], size_t *n,
                                 struct rlhf__error *err) {
    struct rlhf__gguf_item *i = &item[0];
    int32_t layer;
    *i = (struct rlhf__gguf_item){.from = t};
    RLHF_TRY(rlhf__gguf_name(c->family, t, i->name, &layer, &i->rows, err));
    if (layer >= c->layers)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: tensor %s is of layer %d; the model has %d",
                          t->file, t->name, (int)layer, (int)c->layers);
    if (t->ndim < 1 || t->ndim > 2 || t->count < 1 || !rlhf__tensor_is_float(t->dtype))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: tensor %s is not a vector or matrix of F32, F16 or BF16", t->file,
                          t->name);
    // An adapter of GPT-2 is [outputs, rank], although the weight is [inputs, outputs].
    if (lora && i->rows == RLHF__GGUF_TRANSPOSED) i->rows = RLHF__GGUF_AS_IS;
    const int32_t own = rlhf__tensor_dtype_block(t->dtype) > 1 ? RLHF__TENSOR_F32 : t->dtype;
    i->dtype = is_f32(t, i->name) ? RLHF__TENSOR_F32 : dtype >= 0 ? dtype : own;
    const int turned = i->rows == RLHF__GGUF_TRANSPOSED;
    i->n_rows = t->shape[turned && t->ndim == 2 ? 1 : 0];
    i->n_columns = t->count / i->n_rows;
    // As in llama.cpp's converter, rows without whole blocks are F16.
    if (i->n_columns % rlhf__tensor_dtype_block(i->dtype)) i->dtype = RLHF__TENSOR_F16;
    const int32_t heads = i->rows == RLHF__GGUF_PAIR_Q   ? c->heads
                          : i->rows == RLHF__GGUF_PAIR_K ? c->kv_heads
                                                         : 0;
    if (heads && i->n_rows != (int64_t)heads * c->head_dim)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: tensor %s has %lld rows, the config says %d heads of width %d",
                          t->file, t->name, (long long)i->n_rows, (int)heads, (int)c->head_dim);
    *n = i->rows == RLHF__GGUF_GATE_UP ? 2 : 1;
    return *n == 2 ? split(item, err) : RLHF_OK;
}

rlhf_status rlhf__gguf_item_list(struct rlhf__gguf *g, const struct rlhf__gguf_item *i,
                                 struct rlhf__error *err) {
    const int64_t shape[2] = {i->n_rows, i->n_columns};
    return rlhf__gguf_tensor(g, i->name, i->dtype, i->from->ndim, shape, err);
}

// ---- its data ----

// Returns the number of rows in a block. For a transposed weight, these are all rows; for a weight
// with rearranged rows, the rows of one head; otherwise, as many rows as have about CHUNK numbers.
static int64_t block_rows(const struct rlhf__gguf_item *i, const struct rlhf__gguf_config *c) {
    if (i->rows == RLHF__GGUF_TRANSPOSED) return i->n_rows;
    if (i->rows != RLHF__GGUF_AS_IS && i->rows != RLHF__GGUF_PLUS_ONE) return c->head_dim;
    return i->n_columns < CHUNK ? CHUNK / i->n_columns : 1;
}

// Copies n rows from `in`, which has the weight's order, to `out`, which has the order of the GGUF
// file. An element has `size` bytes.
static void arrange(const struct rlhf__gguf_item *i, int64_t n, size_t size, const uint8_t *in,
                    uint8_t *out) {
    const size_t width = (size_t)i->n_columns, row = width * size;
    for (size_t r = 0; r < (size_t)n; r++) {
        const size_t half = r % 2 * ((size_t)n / 2) + r / 2; // row 2 j + s is row s n / 2 + j
        if (i->rows != RLHF__GGUF_TRANSPOSED) memcpy(out + r * row, in + half * row, row);
        for (size_t k = 0; i->rows == RLHF__GGUF_TRANSPOSED && k < width; k++)
            memcpy(out + r * row + k * size, in + (k * (size_t)n + r) * size, size);
    }
}

static rlhf_status put_block(struct rlhf__gguf *g, const struct rlhf__gguf_item *i, int64_t r,
                             int64_t n, float *a, void *b, struct rlhf__error *err) {
    const int64_t at = (i->first + r) * i->n_columns;
    const struct rlhf__rounding from = {i->from->file, i->from->name, at};
    const size_t count = (size_t)(n * i->n_columns), size = rlhf__tensor_dtype_size(i->dtype);
    const size_t block = (size_t)rlhf__tensor_dtype_block(i->dtype);
    RLHF_TRY(rlhf__tensor_read_f32(i->from, at, (int64_t)count, a, err));
    const int plus = i->rows == RLHF__GGUF_PLUS_ONE;
    for (size_t k = 0; plus && k < count; k++)
        a[k] += 1;
    if (block > 1 && !plus && i->rows != RLHF__GGUF_AS_IS) { // its blocks are those of new rows
        arrange(i, n, sizeof *a, (const uint8_t *)a, b);
        RLHF_TRY(rlhf__round_f32(b, count, i->dtype, a, &from, err));
        return rlhf__gguf_put(g, a, count / block * size, err);
    }
    RLHF_TRY(rlhf__round_f32(a, count, i->dtype, b, &from, err));
    if (plus || i->rows == RLHF__GGUF_AS_IS) return rlhf__gguf_put(g, b, count / block * size, err);
    arrange(i, n, size, b, (uint8_t *)a);
    return rlhf__gguf_put(g, a, count * size, err);
}

rlhf_status rlhf__gguf_item_put(struct rlhf__gguf *g, const struct rlhf__gguf_item *i,
                                const struct rlhf__gguf_config *c,
                                const volatile sig_atomic_t *cancelled, struct rlhf__error *err) {
    const int64_t step = block_rows(i, c);
    const size_t room = (size_t)(step * i->n_columns) * sizeof(float);
    float *a = malloc(room);
    void *b = malloc(room);
    rlhf_status st = RLHF_OK;
    if (!a || !b) st = RLHF__NOMEM(err, "out of memory for %s", i->name);
    if (st == RLHF_OK) st = rlhf__tensor_check_scales(i->from, err);
    for (int64_t r = 0; st == RLHF_OK && r < i->n_rows; r += step) {
        const int64_t n = i->n_rows - r < step ? i->n_rows - r : step;
        if (cancelled && *cancelled) st = rlhf__fail(err, RLHF_E_CANCELLED, "stopped");
        if (st == RLHF_OK) st = put_block(g, i, r, n, a, b, err);
    }
    free(a);
    free(b);
    return st;
}
