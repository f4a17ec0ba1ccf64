// tensor.c: see tensor.h.
#include "tensors/tensor.h"

#include "tensors/gguf_blocks.h"

#include <rlhf/exact.h>
#include <stdio.h>
#include <string.h>

// ---- a low-rank product ----

// Add elements [from, from + n) of the low-rank product to out[n]. Each element is the sum of
// `rank` products, added in order.
static void low_rank_add(const struct rlhf__low_rank *l, int64_t from, int64_t n, float *out) {
    while (n > 0) {
        const int64_t row = from / l->cols, col = from % l->cols;
        const int64_t len = n < l->cols - col ? n : l->cols - col;
        for (int64_t r = 0; r < l->rank; r++) {
            const float x = l->left[row * l->rank + r], *y = l->right + r * l->cols + col;
            for (int64_t i = 0; i < len; i++)
                out[i] += x * y[i];
        }
        from += len;
        n -= len;
        out += len;
    }
}

// ---- tensors ----

rlhf_status rlhf__tensor_check_float(const struct rlhf__tensor *t, struct rlhf__error *err) {
    if (rlhf__tensor_is_float(t->dtype)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "%s: tensor %s is %s; weights must be F32, F16 or BF16", t->file, t->name,
                      rlhf__tensor_dtype_name(t->dtype));
}

const char *rlhf__tensor_shape_text(const int64_t *shape, int32_t ndim, char *out, size_t cap) {
    size_t len = 0;
    if (cap) out[0] = '\0';
    for (int32_t i = 0; i <= ndim && len < cap; i++) {
        const char *open = i ? "" : "[", *sep = i && i < ndim ? ", " : "";
        int n = i < ndim
                    ? snprintf(out + len, cap - len, "%s%s%lld", open, sep, (long long)shape[i])
                    : snprintf(out + len, cap - len, "%s]", open);
        len += n > 0 ? (size_t)n : 0;
    }
    return out;
}

// ---- the numbers of a tensor ----

enum { LARGEST_BLOCK = 256 };

// Decodes elements [from, from + n) of a quantised tensor in the order of the file.
static void decode(const struct rlhf__tensor *t, int64_t from, int64_t n, float *out) {
    const int64_t block = rlhf__tensor_dtype_block(t->dtype);
    const uint64_t bytes = rlhf__tensor_dtype_size(t->dtype);
    float whole[LARGEST_BLOCK];
    while (n > 0) {
        const int64_t skip = from % block, left = block - skip, many = skip ? 0 : n / block;
        const uint8_t *at = t->data + (uint64_t)(from / block) * bytes;
        int64_t done = many * block;
        if (many > 0) {
            rlhf__blocks_decode(t->dtype, at, many, out);
        } else {
            done = n < left ? n : left;
            rlhf__blocks_decode(t->dtype, at, 1, whole);
            memcpy(out, whole + skip, (size_t)done * sizeof *out);
        }
        from += done;
        n -= done;
        out += done;
    }
}

// Converts elements [from, from + n) in the order of the file.
static void widen(const struct rlhf__tensor *t, int64_t from, int64_t n, float *out) {
    const uint8_t *at = t->data + (uint64_t)from * rlhf__tensor_dtype_size(t->dtype);
    if (t->dtype == RLHF__TENSOR_F32) // files and hosts are little-endian
        memcpy(out, at, (size_t)n * sizeof *out);
    else if (t->dtype == RLHF__TENSOR_BF16)
        rlhf__widen_bf16(at, n, out);
    else if (t->dtype == RLHF__TENSOR_F16)
        rlhf__widen_f16(at, n, out);
    else
        decode(t, from, n, out);
}

// The row of the file that has row r of a tensor with rotary pairs.
static int64_t paired_row(const struct rlhf__tensor *t, int64_t r) {
    const int64_t half = t->head / 2, in_head = r % t->head;
    return r - in_head + 2 * (in_head % half) + in_head / half;
}

// The row (or column) of the file that has row (or column) r of `all` of a tensor with tiled heads.
static int64_t tiled_row(const struct rlhf__tensor *t, int64_t r, int64_t all) {
    const int64_t each = (all - t->first) / t->head / t->groups; // heads of a group
    if (r < t->first) return r;
    const int64_t head = (r - t->first) / t->head, in_head = (r - t->first) % t->head;
    return t->first + (head % each * t->groups + head / each) * t->head + in_head;
}

static int is_tiled(const struct rlhf__tensor *t) {
    return t->order == RLHF__TENSOR_TILED || t->order == RLHF__TENSOR_DECAYS;
}

// The row of the file that has row r.
static int64_t row_of(const struct rlhf__tensor *t, int64_t r) {
    return t->order == RLHF__TENSOR_PAIRED ? paired_row(t, r)
           : is_tiled(t)                   ? tiled_row(t, r, t->shape[0])
                                           : r;
}

static void widen_rows(const struct rlhf__tensor *t, int64_t from, int64_t n, float *out) {
    const int64_t columns = t->count / t->shape[0];
    while (n > 0) {
        const int64_t c = from % columns, left = columns - c, len = n < left ? n : left;
        widen(t, row_of(t, from / columns) * columns + c, len, out);
        from += len;
        n -= len;
        out += len;
    }
}

static void widen_columns(const struct rlhf__tensor *t, int64_t from, int64_t n, float *out) {
    const int64_t columns = t->shape[1];
    while (n > 0) {
        const int64_t c = from % columns;
        int64_t len = c < t->first ? t->first - c : t->head - (c - t->first) % t->head;
        if (len > n) len = n;
        widen(t, from - c + tiled_row(t, c, columns), len, out);
        from += len;
        n -= len;
        out += len;
    }
}

// Column k of the tensor is row k of the file. Of every such row, converts the elements of the
// tensor's rows that the piece touches.
static void widen_transposed(const struct rlhf__tensor *t, int64_t from, int64_t n, float *out) {
    const int64_t rows = t->shape[0], columns = t->shape[1];
    const int64_t first = from / columns, end = (from + n - 1) / columns + 1;
    float part[LARGEST_BLOCK];
    for (int64_t k = 0; k < columns; k++)
        for (int64_t r = first, len; r < end; r += len) {
            len = LARGEST_BLOCK - r % LARGEST_BLOCK; // whole blocks of the file
            if (len > end - r) len = end - r;
            widen(t, k * rows + r, len, part);
            for (int64_t i = 0; i < len; i++) {
                const int64_t at = (r + i) * columns + k - from;
                if (at >= 0 && at < n) out[at] = part[i];
            }
        }
}

struct piece {
    const struct rlhf__tensor *t;
    int64_t from, n;
    float *out;
};

static void read_piece(void *piece) {
    const struct piece *p = piece;
    if (p->t->order == RLHF__TENSOR_PAIRED || is_tiled(p->t))
        widen_rows(p->t, p->from, p->n, p->out);
    else if (p->t->order == RLHF__TENSOR_TILED_COLUMNS)
        widen_columns(p->t, p->from, p->n, p->out);
    else if (p->t->order == RLHF__TENSOR_TRANSPOSED)
        widen_transposed(p->t, p->from, p->n, p->out);
    else
        widen(p->t, p->from, p->n, p->out);
    for (int64_t i = 0; p->t->order == RLHF__TENSOR_PLUS_ONE && i < p->n; i++)
        p->out[i] -= 1;
    for (int64_t i = 0; p->t->order == RLHF__TENSOR_DECAYS && i < p->n; i++)
        p->out[i] = (float)rlhf_log(-(double)p->out[i]);
}

// Calls `work`, which reads the tensor's data. Then drops bytes [from, to) of the data.
static rlhf_status work_on(const struct rlhf__tensor *t, uint64_t from, uint64_t to,
                           void (*work)(void *arg), void *arg, struct rlhf__error *err) {
    if (!t->in) {
        work(arg);
        return RLHF_OK;
    }
    const uint64_t at = (uint64_t)(t->data - t->in->bytes);
    const rlhf_status st = rlhf__mapped_read(t->in, work, arg, err);
    if (to > from) rlhf__mapped_used(t->in, at + from, at + to);
    return st;
}

// Reads elements of the tensor without those of t->then.
static rlhf_status read_own(const struct rlhf__tensor *t, int64_t from, int64_t n, float *out,
                            struct rlhf__error *err) {
    const uint64_t size = rlhf__tensor_dtype_size(t->dtype);
    const uint64_t block = (uint64_t)rlhf__tensor_dtype_block(t->dtype);
    // If the order differs from the file's, the next piece may need the same bytes.
    const int is_last = from + n == t->count - (t->then ? t->then->count : 0);
    const int in_order = t->order == RLHF__TENSOR_AS_IS || t->order == RLHF__TENSOR_PLUS_ONE;
    const uint64_t begin = in_order ? (uint64_t)from / block * size : 0;
    const uint64_t end = in_order ? (uint64_t)(from + n) / block * size : is_last ? t->n_bytes : 0;
    struct piece p = {.t = t, .from = from, .n = n, .out = out};
    return n == 0 ? RLHF_OK : work_on(t, begin, end, read_piece, &p, err);
}

rlhf_status rlhf__tensor_read_f32(const struct rlhf__tensor *t, int64_t from, int64_t n, float *out,
                                  struct rlhf__error *err) {
    RLHF_TRY(rlhf__tensor_check_float(t, err));
    const int64_t own = t->count - (t->then ? t->then->count : 0);
    const int64_t here = from >= own ? 0 : n < own - from ? n : own - from;
    RLHF_TRY(read_own(t, from, here, out, err));
    if (t->then && n > here)
        RLHF_TRY(rlhf__tensor_read_f32(t->then, from + here - own, n - here, out + here, err));
    if (n > 0 && t->plus) low_rank_add(t->plus, from, n, out);
    return RLHF_OK;
}

struct copy {
    const void *from;
    void *to;
    size_t n;
};

static void copy_bytes(void *copy) {
    const struct copy *c = copy;
    memcpy(c->to, c->from, c->n);
}

rlhf_status rlhf__tensor_read_bytes(const struct rlhf__tensor *t, void *out,
                                    struct rlhf__error *err) {
    struct copy c = {.from = t->data, .to = out, .n = (size_t)t->n_bytes};
    return c.n ? work_on(t, 0, t->n_bytes, copy_bytes, &c, err) : RLHF_OK;
}

// ---- blocks ----

struct scales {
    const struct rlhf__tensor *t;
    int64_t from, n, bad; // bad: n, or the first block whose scale is not finite
};

static void look_at_scales(void *scales) {
    struct scales *s = scales;
    const uint64_t bytes = rlhf__tensor_dtype_size(s->t->dtype);
    s->bad = rlhf__blocks_not_finite(s->t->dtype, s->t->data + (uint64_t)s->from * bytes, s->n);
}

rlhf_status rlhf__tensor_check_scales(const struct rlhf__tensor *t, struct rlhf__error *err) {
    enum { STEP = 1 << 13 };
    const uint64_t bytes = rlhf__tensor_dtype_size(t->dtype);
    const int64_t all = (int64_t)(t->n_bytes / bytes);
    if (rlhf__tensor_dtype_block(t->dtype) == 1) return RLHF_OK;
    for (int64_t at = 0; at < all; at += STEP) {
        struct scales s = {.t = t, .from = at, .n = all - at < STEP ? all - at : STEP};
        const uint64_t end = (uint64_t)(at + s.n) * bytes;
        RLHF_TRY(work_on(t, (uint64_t)at * bytes, end, look_at_scales, &s, err));
        if (s.bad < s.n)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s: block %lld of tensor %s (%s) has a scale that is infinite or "
                              "NaN; take the file from its source again",
                              t->file, (long long)(at + s.bad), t->name,
                              rlhf__tensor_dtype_name(t->dtype));
    }
    return t->then ? rlhf__tensor_check_scales(t->then, err) : RLHF_OK;
}

int rlhf__tensor_has_blocks(const struct rlhf__tensor *t) {
    const int whole = t->order == RLHF__TENSOR_AS_IS || t->order == RLHF__TENSOR_PAIRED ||
                      t->order == RLHF__TENSOR_TILED;
    if (t->ndim != 2 || rlhf__tensor_dtype_block(t->dtype) == 1 || !whole) return 0;
    return !t->then || (t->then->dtype == t->dtype && rlhf__tensor_has_blocks(t->then));
}

struct rows {
    const struct rlhf__tensor *t;
    int64_t row, n;
    uint64_t bytes; // of a row
    uint8_t *out;
};

static void copy_rows(void *rows) {
    const struct rows *r = rows;
    for (int64_t i = 0; i < r->n; i++) {
        const int64_t at = row_of(r->t, r->row + i);
        memcpy(r->out + (uint64_t)i * r->bytes, r->t->data + (uint64_t)at * r->bytes,
               (size_t)r->bytes);
    }
}

rlhf_status rlhf__tensor_read_blocks(const struct rlhf__tensor *t, int64_t row, int64_t n,
                                     void *out, struct rlhf__error *err) {
    if (!rlhf__tensor_has_blocks(t))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "%s: the rows of tensor '%s' are not quantised",
                          t->file, t->name);
    const uint64_t bytes = (uint64_t)(t->shape[1] / rlhf__tensor_dtype_block(t->dtype)) *
                           rlhf__tensor_dtype_size(t->dtype);
    const int64_t own = t->shape[0] - (t->then ? t->then->shape[0] : 0);
    const int64_t here = row >= own ? 0 : n < own - row ? n : own - row;
    struct rows r = {.t = t, .row = row, .n = here, .bytes = bytes, .out = out};
    const int is_last = row + here == own, moved = t->order != RLHF__TENSOR_AS_IS;
    const uint64_t begin = moved ? 0 : (uint64_t)row * bytes;
    const uint64_t end = !moved ? (uint64_t)(row + here) * bytes : is_last ? t->n_bytes : 0;
    if (here > 0) RLHF_TRY(work_on(t, begin, end, copy_rows, &r, err));
    if (n == here || !t->then) return RLHF_OK;
    return rlhf__tensor_read_blocks(t->then, row + here - own, n - here,
                                    (uint8_t *)out + (uint64_t)here * bytes, err);
}
