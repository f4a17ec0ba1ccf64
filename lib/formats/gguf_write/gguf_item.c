// gguf_item.c: see gguf_item.h.
#include "gguf_write/gguf_item.h"

#include "weights/rounding.h"

#include <rlhf/exact.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 16 }; // elements of a block, at least one row

// ---- its name and form ----

static int is_f32(const struct rlhf__tensor *t, const char *name, int32_t rows) {
    return t->ndim < 2 || rlhf__gguf_has_taps(rows) || strcmp(name, "position_embd.weight") == 0;
}

// Checks that a tensor with tiled heads has these heads.
static rlhf_status check_tiles(const struct rlhf__gguf_config *c, struct rlhf__gguf_item *i,
                               struct rlhf__error *err) {
    const struct rlhf__gguf_mix *m = &c->mix;
    rlhf__gguf_tile(i->rows, m, &i->before, &i->head);
    const int64_t n = i->rows == RLHF__GGUF_TILED_COLUMNS ? i->n_columns : i->n_rows;
    if (!i->head || n == i->before + (int64_t)m->value_heads * i->head) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s: tensor %s has %lld rows and %lld columns; the config says %d heads of "
                      "values of width %d",
                      i->from->file, i->from->name, (long long)i->n_rows, (long long)i->n_columns,
                      (int)m->value_heads, (int)m->value_dim);
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
    struct rlhf__gguf_place p;
    *i = (struct rlhf__gguf_item){.from = t};
    RLHF_TRY(rlhf__gguf_name(c->family, t, &p, err));
    memcpy(i->name, p.name, sizeof i->name);
    i->rows = p.rows;
    if (p.layer >= c->layers)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: tensor %s is of layer %d; the model has %d",
                          t->file, t->name, (int)p.layer, (int)c->layers);
    if (!rlhf__gguf_fits(&c->mix, &p))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: tensor %s does not belong to a layer of the kind that layer %d has "
                          "by the config",
                          t->file, t->name, (int)p.layer);
    const int taps = rlhf__gguf_has_taps(i->rows);
    const int shaped = taps ? t->ndim == 3 && t->shape[1] == 1 : t->ndim == 1 || t->ndim == 2;
    if (!shaped || t->count < 1 || !rlhf__tensor_is_float(t->dtype))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: tensor %s is not a vector or matrix of F32, F16 or BF16", t->file,
                          t->name);
    // An adapter of GPT-2 is [outputs, rank], although the weight is [inputs, outputs].
    if (lora && i->rows == RLHF__GGUF_TRANSPOSED) i->rows = RLHF__GGUF_AS_IS;
    // The columns of an adapter are those of its matrix A.
    i->low = lora && i->rows == RLHF__GGUF_TILED_COLUMNS;
    if (i->low) i->rows = RLHF__GGUF_AS_IS;
    const int32_t own = rlhf__tensor_dtype_block(t->dtype) > 1 ? RLHF__TENSOR_F32 : t->dtype;
    i->dtype = is_f32(t, i->name, i->rows) ? RLHF__TENSOR_F32 : dtype >= 0 ? dtype : own;
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
    RLHF_TRY(check_tiles(c, i, err));
    *n = i->rows == RLHF__GGUF_GATE_UP ? 2 : 1;
    return *n == 2 ? split(item, err) : RLHF_OK;
}

rlhf_status rlhf__gguf_item_low(const struct rlhf__gguf_config *c, struct rlhf__gguf_item *i,
                                struct rlhf__error *err) {
    i->rows = i->low ? RLHF__GGUF_TILED_COLUMNS : RLHF__GGUF_AS_IS;
    return check_tiles(c, i, err);
}

rlhf_status rlhf__gguf_item_list(struct rlhf__gguf *g, const struct rlhf__gguf_item *i,
                                 struct rlhf__error *err) {
    const int64_t shape[2] = {i->n_rows, i->n_columns};
    return rlhf__gguf_tensor(g, i->name, i->dtype, i->from->ndim > 1 ? 2 : 1, shape, err);
}

// ---- its data ----

// 1 if the rows of a head are rearranged.
static int moves_rows(const struct rlhf__gguf_item *i) {
    return i->rows == RLHF__GGUF_TRANSPOSED || i->rows == RLHF__GGUF_PAIR_Q ||
           i->rows == RLHF__GGUF_PAIR_K;
}

// Row (or column) `at` of the file, of a tensor with tiled heads: sets *n to the number of rows of
// the weight from there that follow each other in both, and returns the first of them.
static int64_t untiled(const struct rlhf__gguf_item *i, const struct rlhf__gguf_mix *m, int64_t at,
                       int64_t *n) {
    if (at < i->before) {
        if (*n > i->before - at) *n = i->before - at;
        return at;
    }
    const int64_t head = (at - i->before) / i->head, in_head = (at - i->before) % i->head;
    const int64_t each = m->value_heads / m->key_heads;
    if (*n > i->head - in_head) *n = i->head - in_head;
    return i->before + (head % m->key_heads * each + head / m->key_heads) * i->head + in_head;
}

// Copies n rows of floats with the columns of the file's order.
static void tile_columns(const struct rlhf__gguf_item *i, const struct rlhf__gguf_mix *m, int64_t n,
                         const float *in, float *out) {
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0, len; c < i->n_columns; c += len) {
            len = i->n_columns - c;
            const int64_t from = untiled(i, m, c, &len);
            memcpy(out + r * i->n_columns + c, in + r * i->n_columns + from,
                   (size_t)len * sizeof *out);
        }
}

// Returns the number of rows in a block. For a transposed weight, these are all rows; for a weight
// with rearranged rows, the rows of one head; otherwise, as many rows as have about CHUNK numbers.
static int64_t block_rows(const struct rlhf__gguf_item *i, const struct rlhf__gguf_config *c) {
    if (i->rows == RLHF__GGUF_TRANSPOSED) return i->n_rows;
    if (moves_rows(i)) return c->head_dim;
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

// Reads n rows from row r of the weight, and writes them.
static rlhf_status put_block(struct rlhf__gguf *g, const struct rlhf__gguf_item *i,
                             const struct rlhf__gguf_config *c, int64_t r, int64_t n, float *a,
                             float *b, struct rlhf__error *err) {
    const int64_t at = (i->first + r) * i->n_columns;
    const struct rlhf__rounding from = {i->from->file, i->from->name, at};
    const size_t count = (size_t)(n * i->n_columns), size = rlhf__tensor_dtype_size(i->dtype);
    const size_t block = (size_t)rlhf__tensor_dtype_block(i->dtype);
    RLHF_TRY(rlhf__tensor_read_f32(i->from, at, (int64_t)count, a, err));
    for (size_t k = 0; i->rows == RLHF__GGUF_PLUS_ONE && k < count; k++)
        a[k] += 1;
    for (size_t k = 0; i->rows == RLHF__GGUF_DECAYS && k < count; k++)
        a[k] = (float)-rlhf_exp((double)a[k]);
    const int columns = i->rows == RLHF__GGUF_TILED_COLUMNS && i->head;
    if (columns || (block > 1 && moves_rows(i))) { // its blocks are those of new rows
        if (columns)
            tile_columns(i, &c->mix, n, a, b);
        else
            arrange(i, n, sizeof *a, (const uint8_t *)a, (uint8_t *)b);
        RLHF_TRY(rlhf__round_f32(b, count, i->dtype, a, &from, err));
        return rlhf__gguf_put(g, a, count / block * size, err);
    }
    RLHF_TRY(rlhf__round_f32(a, count, i->dtype, b, &from, err));
    if (!moves_rows(i)) return rlhf__gguf_put(g, b, count / block * size, err);
    arrange(i, n, size, (const uint8_t *)b, (uint8_t *)a);
    return rlhf__gguf_put(g, a, count * size, err);
}

rlhf_status rlhf__gguf_item_put(struct rlhf__gguf *g, const struct rlhf__gguf_item *i,
                                const struct rlhf__gguf_config *c,
                                const volatile sig_atomic_t *cancelled, struct rlhf__error *err) {
    const int64_t step = block_rows(i, c);
    const size_t room = (size_t)(step * i->n_columns) * sizeof(float);
    float *a = malloc(room), *b = malloc(room);
    const int tiled = i->head && i->rows != RLHF__GGUF_TILED_COLUMNS;
    rlhf_status st = RLHF_OK;
    if (!a || !b) st = RLHF__NOMEM(err, "out of memory for %s", i->name);
    if (st == RLHF_OK) st = rlhf__tensor_check_scales(i->from, err);
    for (int64_t r = 0, n; st == RLHF_OK && r < i->n_rows; r += n) {
        n = i->n_rows - r < step ? i->n_rows - r : step;
        const int64_t from = tiled ? untiled(i, &c->mix, r, &n) : r;
        if (cancelled && *cancelled) st = rlhf__fail(err, RLHF_E_CANCELLED, "stopped");
        if (st == RLHF_OK) st = put_block(g, i, c, from, n, a, b, err);
    }
    free(a);
    free(b);
    return st;
}
