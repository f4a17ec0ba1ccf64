// gguf.c: see gguf.h.
#include "export/gguf.h"

#include "export/gguf_config.h"
#include "export/gguf_rope.h"
#include "export/gguf_tokens.h"
#include "weights/hf_dir.h"
#include "weights/rounding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 16 }; // elements of a block, at least one row

// A tensor of the file.
struct item {
    const struct rlhf__tensor *from;
    char name[RLHF__GGUF_NAME_CAP];
    int32_t rows, dtype;              // enum rlhf__gguf_rows; dtype in the file
    int64_t first, n_rows, n_columns; // first: its first row in `from`
};

struct plan {
    struct rlhf__gguf_config config;
    struct item *item; // [n]
    size_t n;
};

// ---- which tensors, and how ----

static int is_f32(const struct rlhf__tensor *t, const char *name) {
    return t->ndim < 2 || strcmp(name, "position_embd.weight") == 0;
}

// Makes two tensors of one: ffn_gate, and ffn_up with the same number of rows.
static rlhf_status split(struct plan *p, struct item *gate, struct rlhf__error *err) {
    struct item *up = &p->item[p->n++];
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

static rlhf_status plan_item(const struct rlhf__gguf_model *m, const struct rlhf__tensor *t,
                             struct plan *p, struct rlhf__error *err) {
    struct item *i = &p->item[p->n++];
    int32_t layer;
    i->from = t;
    RLHF_TRY(rlhf__gguf_name(p->config.family, t, i->name, &layer, &i->rows, err));
    if (layer >= p->config.layers)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: tensor %s is of layer %d; the model has %d",
                          t->file, t->name, (int)layer, (int)p->config.layers);
    if (t->ndim < 1 || t->ndim > 2 || t->count < 1 || !rlhf__tensor_is_float(t->dtype))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: tensor %s is not a vector or matrix of F32, F16 or BF16", t->file,
                          t->name);
    i->dtype = is_f32(t, i->name) ? RLHF__TENSOR_F32 : m->dtype >= 0 ? m->dtype : t->dtype;
    const int turned = i->rows == RLHF__GGUF_TRANSPOSED;
    i->n_rows = t->shape[turned && t->ndim == 2 ? 1 : 0];
    i->n_columns = t->count / i->n_rows;
    const int32_t heads = i->rows == RLHF__GGUF_PAIR_Q   ? p->config.heads
                          : i->rows == RLHF__GGUF_PAIR_K ? p->config.kv_heads
                                                         : 0;
    if (heads && i->n_rows != (int64_t)heads * p->config.head_dim)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: tensor %s has %lld rows, the config says %d heads of width %d",
                          t->file, t->name, (long long)i->n_rows, (int)heads,
                          (int)p->config.head_dim);
    return i->rows == RLHF__GGUF_GATE_UP ? split(p, i, err) : RLHF_OK;
}

static int by_name(const void *a, const void *b) {
    const struct item *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int is_called(const void *name, const void *item) {
    const struct item *const *i = item;
    return strcmp(name, (*i)->name);
}

// Checks that no required tensor is missing. `sorted` has the p->n items, sorted by name.
static rlhf_status check_all_there(const struct rlhf__gguf_model *m, const struct plan *p,
                                   const struct item *const *sorted, struct rlhf__error *err) {
    char pattern[RLHF__GGUF_NAME_CAP], name[RLHF__GGUF_NAME_CAP + 16];
    const int tied = rlhf__hf_tied(m->config);
    for (size_t k = 0; rlhf__gguf_required(p->config.family, tied, k, pattern); k++) {
        const char *layer = strstr(pattern, "%d");
        for (int32_t i = 0; i < (layer ? p->config.layers : 1); i++) {
            if (layer)
                snprintf(name, sizeof name, "%.*s%d%s", (int)(layer - pattern), pattern, (int)i,
                         layer + 2);
            else
                snprintf(name, sizeof name, "%s", pattern);
            if (!bsearch(name, sorted, p->n, sizeof *sorted, is_called))
                return rlhf__fail(err, RLHF_E_INVALID,
                                  "%s: the weights lack what is %s in a GGUF file", m->dir, name);
        }
    }
    return RLHF_OK;
}

// Checks that each name occurs once and that none is missing.
static rlhf_status check_names(const struct rlhf__gguf_model *m, const struct plan *p,
                               struct rlhf__error *err) {
    const struct item **sorted = calloc(p->n + 1, sizeof *sorted);
    if (!sorted) return RLHF__NOMEM(err, "out of memory for the names of tensors");
    for (size_t i = 0; i < p->n; i++)
        sorted[i] = &p->item[i];
    qsort(sorted, p->n, sizeof *sorted, by_name);
    rlhf_status st = RLHF_OK;
    for (size_t i = 1; i < p->n && st == RLHF_OK; i++)
        if (by_name(&sorted[i - 1], &sorted[i]) == 0)
            st = rlhf__fail(err, RLHF_E_INVALID,
                            "%s: the tensors %s and %s would both be %s in a GGUF file", m->dir,
                            sorted[i - 1]->from->name, sorted[i]->from->name, sorted[i]->name);
    if (st == RLHF_OK) st = check_all_there(m, p, sorted, err);
    free(sorted);
    return st;
}

static rlhf_status make_plan(const struct rlhf__gguf_model *m, struct plan *p,
                             struct rlhf__error *err) {
    RLHF_TRY(rlhf__gguf_config_read(m->config, m->dir, &p->config, err));
    p->item = calloc(2 * m->n + 1, sizeof *p->item); // a tensor becomes at most two
    if (!p->item) return RLHF__NOMEM(err, "out of memory for the list of tensors");
    for (size_t i = 0; i < m->n; i++)
        RLHF_TRY(plan_item(m, m->tensor[i], p, err));
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->item[i].name, "token_embd.weight") == 0 &&
            p->item[i].n_rows != p->config.vocab)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s: the embedding has %lld rows, vocab_size is %d", m->dir,
                              (long long)p->item[i].n_rows, (int)p->config.vocab);
    return check_names(m, p, err);
}

// ---- data ----

// Returns the number of rows in a block. For a transposed weight, these are all rows; for a weight
// with rearranged rows, the rows of one head; otherwise, as many rows as have about CHUNK numbers.
static int64_t block_rows(const struct item *i, const struct rlhf__gguf_config *c) {
    if (i->rows == RLHF__GGUF_TRANSPOSED) return i->n_rows;
    if (i->rows != RLHF__GGUF_AS_IS && i->rows != RLHF__GGUF_PLUS_ONE) return c->head_dim;
    return i->n_columns < CHUNK ? CHUNK / i->n_columns : 1;
}

// Copies n rows from `in`, which has the weight's order, to `out`, which has the order of the GGUF
// file. An element has `size` bytes.
static void arrange(const struct item *i, int64_t n, size_t size, const uint8_t *in, uint8_t *out) {
    const size_t width = (size_t)i->n_columns, row = width * size;
    for (size_t r = 0; r < (size_t)n; r++) {
        const size_t half = r % 2 * ((size_t)n / 2) + r / 2; // row 2 j + s is row s n / 2 + j
        if (i->rows != RLHF__GGUF_TRANSPOSED) memcpy(out + r * row, in + half * row, row);
        for (size_t k = 0; i->rows == RLHF__GGUF_TRANSPOSED && k < width; k++)
            memcpy(out + r * row + k * size, in + (k * (size_t)n + r) * size, size);
    }
}

static rlhf_status put_block(struct rlhf__gguf *g, const struct item *i, int64_t r, int64_t n,
                             float *a, void *b, struct rlhf__error *err) {
    const int64_t at = (i->first + r) * i->n_columns;
    const struct rlhf__rounding from = {i->from->file, i->from->name, at};
    const size_t count = (size_t)(n * i->n_columns), size = rlhf__tensor_dtype_size(i->dtype);
    RLHF_TRY(rlhf__tensor_read_f32(i->from, at, (int64_t)count, a, err));
    const int plus = i->rows == RLHF__GGUF_PLUS_ONE;
    for (size_t k = 0; plus && k < count; k++)
        a[k] += 1;
    RLHF_TRY(rlhf__round_f32(a, count, i->dtype, b, &from, err));
    if (plus || i->rows == RLHF__GGUF_AS_IS) return rlhf__gguf_put(g, b, count * size, err);
    arrange(i, n, size, b, (uint8_t *)a);
    return rlhf__gguf_put(g, a, count * size, err);
}

static rlhf_status put_item(struct rlhf__gguf *g, const struct rlhf__gguf_model *m,
                            const struct plan *p, const struct item *i, struct rlhf__error *err) {
    const int64_t step = block_rows(i, &p->config);
    const size_t room = (size_t)(step * i->n_columns) * sizeof(float);
    float *a = malloc(room);
    void *b = malloc(room);
    rlhf_status st = RLHF_OK;
    if (!a || !b) st = RLHF__NOMEM(err, "out of memory for %s", i->name);
    for (int64_t r = 0; st == RLHF_OK && r < i->n_rows; r += step) {
        const int64_t n = i->n_rows - r < step ? i->n_rows - r : step;
        if (m->cancelled && *m->cancelled) st = rlhf__fail(err, RLHF_E_CANCELLED, "stopped");
        if (st == RLHF_OK) st = put_block(g, i, r, n, a, b, err);
    }
    free(a);
    free(b);
    return st;
}

static rlhf_status put_rope(struct rlhf__gguf *g, const struct rlhf__gguf_model *m,
                            const struct rlhf__gguf_rope *rope, struct rlhf__error *err) {
    const size_t n = (size_t)rope->dim / 2;
    rlhf_status st = RLHF_OK;
    float *divisor = calloc(n, sizeof *divisor);
    if (!divisor) return RLHF__NOMEM(err, "out of memory for the rotary positions");
    for (int32_t i = 0; st == RLHF_OK && i < rope->n; i++) {
        rlhf__gguf_rope_divisors(m->config, rope, i, divisor);
        st = rlhf__gguf_put(g, divisor, n * sizeof *divisor, err);
    }
    free(divisor);
    return st;
}

// ---- the file ----

// Returns llama.cpp's number for the type of the file, i.e. the type of most of its tensors. The
// embedding has this type, so the function looks only at the embedding.
static uint32_t file_type(const struct plan *p) {
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->item[i].name, "token_embd.weight") == 0)
            return p->item[i].dtype == RLHF__TENSOR_F16    ? 1
                   : p->item[i].dtype == RLHF__TENSOR_BF16 ? 32
                                                           : 0;
    return 0;
}

static rlhf_status put_head(struct rlhf__gguf *g, const struct rlhf__gguf_model *m,
                            const struct plan *p, struct rlhf__error *err) {
    rlhf__gguf_str(g, "general.architecture", p->config.arch);
    rlhf__gguf_str(g, "general.type", "model");
    rlhf__gguf_str(g, "general.name", m->name);
    rlhf__gguf_u32(g, "general.file_type", file_type(p));
    rlhf__gguf_u32(g, "general.quantization_version",
                   2); // version of ggml's quantized formats, none of which is used
    RLHF_TRY(rlhf__gguf_config_put(g, m->config, m->dir, &p->config, err));
    RLHF_TRY(rlhf__gguf_tokens_put(g, m->dir, m->config, p->config.vocab, err));
    for (size_t i = 0; i < p->n; i++) {
        const struct item *it = &p->item[i];
        const int64_t shape[2] = {it->n_rows, it->n_columns};
        RLHF_TRY(rlhf__gguf_tensor(g, it->name, it->dtype, it->from->ndim, shape, err));
    }
    const struct rlhf__gguf_rope *rope = &p->config.rope;
    const int64_t half = rope->dim / 2;
    for (int32_t i = 0; i < rope->n; i++)
        RLHF_TRY(rlhf__gguf_tensor(g, rope->divisors[i].name, RLHF__TENSOR_F32, 1, &half, err));
    return RLHF_OK;
}

static rlhf_status with_plan(const struct rlhf__gguf_model *m, const struct rlhf__folder *in,
                             const char *name, struct rlhf__error *err) {
    struct plan p = {0};
    struct rlhf__gguf *g = rlhf__gguf_writer_open();
    rlhf_status st = g ? make_plan(m, &p, err) : RLHF__NOMEM(err, "out of memory for a GGUF file");
    if (st == RLHF_OK) st = put_head(g, m, &p, err);
    if (st == RLHF_OK && name) st = rlhf__gguf_begin(g, in, name, err);
    for (size_t i = 0; st == RLHF_OK && name && i < p.n; i++)
        st = put_item(g, m, &p, &p.item[i], err);
    if (st == RLHF_OK && name) st = put_rope(g, m, &p.config.rope, err);
    free(p.item);
    if (st == RLHF_OK && name) return rlhf__gguf_commit(g, err);
    rlhf__gguf_abort(g);
    return st;
}

rlhf_status rlhf__gguf_check(const struct rlhf__gguf_model *m, struct rlhf__error *err) {
    return with_plan(m, NULL, NULL, err);
}

rlhf_status rlhf__gguf_write(const struct rlhf__gguf_model *m, const struct rlhf__folder *in,
                             const char *name, struct rlhf__error *err) {
    return with_plan(m, in, name, err);
}
