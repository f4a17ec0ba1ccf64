// quantised.c: weights whose rows stay quantised (rlhf_quantised), and embed_weight. weight_put
// keeps the blocks, and also dequantises them to the ordinary weight that all products read.
#include "number.h"
#include "ops.h"
#include "weight.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- blocks ----

// The f16 number in two bytes.
static float f16(const uint8_t *p) {
    const int bits = p[0] | p[1] << 8, exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float sign = bits & 0x8000 ? -1.0f : 1.0f;
    if (exponent == 31) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexpf((float)fraction, -24);
    return sign * ldexpf((float)(fraction + 1024), exponent - 25);
}

// Element i of 32 numbers of 4 bits: the low halves of the 16 bytes come first.
static int four_bits(const uint8_t *q, int i) { return i < 16 ? q[i] & 15 : q[i - 16] >> 4; }

// The scale and the minimum, of 6 bits each, of the 32 elements `sub` of a block of Q4_K.
static void q4_k_scale(const uint8_t *s, int sub, int *scale, int *min) {
    if (sub < 4) {
        *scale = s[sub] & 63;
        *min = s[4 + sub] & 63;
        return;
    }
    *scale = (s[4 + sub] & 15) | s[sub - 4] >> 6 << 4;
    *min = s[4 + sub] >> 4 | s[sub] >> 6 << 4;
}

static float q4_k(const uint8_t *b, int i) {
    int scale, min;
    q4_k_scale(b + 4, i / 32, &scale, &min);
    const uint8_t *q = b + 16 + i / 64 * 32;
    const int v = i % 64 < 32 ? q[i % 32] & 15 : q[i % 32] >> 4;
    const float d = f16(b) * (float)scale, m = f16(b + 2) * (float)min, product = d * (float)v;
    return product - m;
}

static float q6_k(const uint8_t *b, int i) {
    const uint8_t *low = b + i / 128 * 64, *high = b + 128 + i / 128 * 32;
    const int of_low = i % 128 < 64 ? low[i % 64] & 15 : low[i % 64] >> 4;
    const int v = of_low | (high[i % 32] >> (i % 128 / 32 * 2) & 3) << 4;
    const float d = f16(b + 208) * (float)(int8_t)b[192 + i / 16];
    return d * (float)(v - 32);
}

// Element i of 32 integers of 5 bits: the high bits, then the low bits.
static int five_bits(const uint8_t *q, int i) {
    return four_bits(q + 4, i) | (q[i / 8] >> i % 8 & 1) << 4;
}

// Element i of a block.
static float element(int32_t format, const uint8_t *b, int i) {
    switch (format) {
    case RLHF_FORMAT_Q8_0:
        return (float)(int8_t)b[2 + i] * f16(b);
    case RLHF_FORMAT_Q4_0:
        return f16(b) * (float)(four_bits(b + 2, i) - 8);
    case RLHF_FORMAT_Q4_1: {
        const float product = f16(b) * (float)four_bits(b + 4, i);
        return product + f16(b + 2);
    }
    case RLHF_FORMAT_Q5_0:
        return f16(b) * (float)(five_bits(b + 2, i) - 16);
    case RLHF_FORMAT_Q5_1: {
        const float product = f16(b) * (float)five_bits(b + 4, i);
        return product + f16(b + 2);
    }
    case RLHF_FORMAT_Q4_K:
        return q4_k(b, i);
    default:
        return q6_k(b, i);
    }
}

// Element c of a row.
static float row_element(int32_t format, const uint8_t *row, uint64_t c) {
    const uint64_t elements = (uint64_t)rlhf_format_elements(format);
    if (!elements) return 0.0f;
    return element(format, row + c / elements * (uint64_t)rlhf_format_bytes(format),
                   (int)(c % elements));
}

// ---- weights ----

static rlhf_status check(struct rlhf__ref *r, const rlhf_quantised *a) {
    int64_t rows = 0;
    RLHF_TRY(rlhf__ref_check_dtype(r, r->op, a->dtype));
    if (a->k < 1 || a->n < 1 || !a->n_parts)
        return rlhf__ref_fail(r, RLHF_E_INVALID, "k = %d, n = %d, %u parts, all must be at least 1",
                              a->k, a->n, a->n_parts);
    if (a->flags & ~(uint32_t)RLHF_WEIGHT_KNOWN)
        return rlhf__ref_fail(r, RLHF_E_UNSUPPORTED, "flags 0x%x, allowed bits are 0x%x", a->flags,
                              (unsigned)RLHF_WEIGHT_KNOWN);
    for (uint32_t p = 0; p < a->n_parts; p++) {
        const int32_t elements = rlhf_format_elements(a->format[p]);
        if (elements < 2)
            return rlhf__ref_fail(r, RLHF_E_UNSUPPORTED, "part %u has format %d, known are 1 to %d",
                                  p, a->format[p], RLHF_FORMAT_Q5_1);
        if (a->k % elements)
            return rlhf__ref_fail(r, RLHF_E_INVALID,
                                  "k = %d, but the blocks of part %u have %d elements", a->k, p,
                                  elements);
        if (a->count[p] < 1)
            return rlhf__ref_fail(r, RLHF_E_INVALID, "part %u has %d rows, must be at least 1", p,
                                  a->count[p]);
        rows += a->count[p];
    }
    if (rows == a->n) return RLHF_OK;
    return rlhf__ref_fail(r, RLHF_E_INVALID, "the parts have %lld rows, the weight has %d",
                          (long long)rows, a->n);
}

// The bytes of all blocks.
static uint64_t blocks_bytes(const rlhf_quantised *a) {
    uint64_t bytes = 0;
    for (uint32_t p = 0; p < a->n_parts; p++)
        bytes += (uint64_t)a->count[p] * rlhf_format_row_bytes(a->format[p], a->k);
    return bytes;
}

static rlhf_status read_arguments(struct rlhf__ref *r, const char *op, rlhf_quantised *a,
                                  const rlhf_quantised *from) {
    r->op = op;
    RLHF_TRY(rlhf__ref_copy_in(r, op, a, sizeof *a, from, RLHF_SIZE_TO(rlhf_quantised, count)));
    return check(r, a);
}

static uint64_t weight_quantised_bytes(void *ctx, const rlhf_quantised *from) {
    rlhf_quantised a;
    if (read_arguments(ctx, "weight_quantised_bytes", &a, from) < 0) return 0;
    return rlhf__ref_weight_bytes(a.k, a.n) + blocks_bytes(&a);
}

// Fills the parts and the blocks of w.
static rlhf_status fill(struct rlhf__ref *r, rlhf_weight *w, const rlhf_quantised *a) {
    const uint64_t bytes = blocks_bytes(a);
    w->part = calloc(a->n_parts, sizeof *w->part);
    w->blocks = malloc(bytes ? bytes : 1);
    if (!w->part || !w->blocks)
        return rlhf__ref_fail(r, RLHF_E_NOMEM, "out of memory for %llu bytes of blocks",
                              (unsigned long long)bytes);
    int32_t from = 0;
    uint64_t at = 0;
    for (uint32_t p = 0; p < a->n_parts; p++) {
        w->part[p] = (struct rlhf__ref_part){a->format[p], from, a->count[p], 0, at};
        from += a->count[p];
        at += (uint64_t)a->count[p] * rlhf_format_row_bytes(a->format[p], a->k);
    }
    w->n_parts = a->n_parts;
    w->blocks_bytes = at;
    r->weight_bytes += at;
    return RLHF_OK;
}

static rlhf_status weight_create_quantised(void *ctx, const rlhf_quantised *from,
                                           rlhf_weight **out) {
    rlhf_quantised a;
    RLHF_TRY(read_arguments(ctx, "weight_create_quantised", &a, from));
    rlhf_weight *w = NULL;
    RLHF_TRY(rlhf__ref_weight_create(ctx, a.k, a.n, a.dtype, a.flags | RLHF_WEIGHT_OUT_IN, &w));
    const rlhf_status st = fill(ctx, w, &a);
    if (st < 0)
        rlhf__ref_weight_destroy(ctx, w);
    else
        *out = w;
    return st;
}

// The part of row `row`.
static const struct rlhf__ref_part *part_of(const rlhf_weight *w, int32_t row) {
    const struct rlhf__ref_part *p = w->part;
    while (row >= p->from + p->count)
        p++;
    return p;
}

static const uint8_t *row_blocks(const rlhf_weight *w, const struct rlhf__ref_part *p,
                                 int32_t row) {
    return w->blocks + p->at + (uint64_t)(row - p->from) * rlhf_format_row_bytes(p->format, w->k);
}

static rlhf_status weight_put(void *ctx, rlhf_weight *w, int32_t from, int32_t rows,
                              const void *host_blocks) {
    struct rlhf__ref *r = ctx;
    RLHF_TRY(rlhf__ref_enter(r, "weight_put", NULL, 0));
    if (!w->part) return rlhf__ref_fail(r, RLHF_E_INVALID, "the weight is not quantised");
    if (from < 0 || rows < 1 || from > w->n - rows)
        return rlhf__ref_fail(r, RLHF_E_INVALID, "rows %d and %d more, but the weight has %d", from,
                              rows, w->n);
    const struct rlhf__ref_part *p = part_of(w, from);
    if (from + rows > p->from + p->count)
        return rlhf__ref_fail(r, RLHF_E_INVALID,
                              "rows %d and %d more are of two parts, the first ends with row %d",
                              from, rows, p->from + p->count - 1);
    const uint64_t k = (uint64_t)w->k, n = (uint64_t)w->n;
    uint8_t *to = w->blocks + (row_blocks(w, p, from) - w->blocks);
    memcpy(to, host_blocks, (uint64_t)rows * rlhf_format_row_bytes(p->format, w->k));
    for (int32_t j = from; j < from + rows; j++)
        for (uint64_t i = 0; i < k; i++) {
            const float v = row_element(p->format, row_blocks(w, p, j), i);
            w->w[i * n + (uint64_t)j] =
                w->dtype == RLHF_BF16 ? rlhf__ref_from_bf16(rlhf__ref_to_bf16(v)) : v;
        }
    w->rows_put = rows < w->n - w->rows_put ? w->rows_put + rows : w->n;
    w->packed = w->rows_put == w->n;
    return rlhf__ref_leave(r, RLHF_OK);
}

static rlhf_status embed_weight(void *ctx, rlhf_dev out, rlhf_dev ids, const rlhf_weight *w,
                                double scale, uint32_t rows) {
    struct rlhf__ref *r = ctx;
    RLHF_TRY(rlhf__ref_check_weight(r, "embed_weight", w, 0));
    if (!w->part) return rlhf__ref_fail(r, RLHF_E_INVALID, "the weight is not quantised");
    const uint64_t k = (uint64_t)w->k;
    const struct rlhf__ref_use uses[] = {rlhf__ref_range(out, rows * k, sizeof(float)),
                                         rlhf__ref_range(ids, rows, sizeof(int32_t))};
    RLHF_TRY(rlhf__ref_enter(r, "embed_weight", uses, RLHF__REF_COUNT(uses)));
    rlhf_status st = RLHF_OK;
    for (uint64_t t = 0; st == RLHF_OK && t < rows; t++) {
        const int32_t id = rlhf__ref_i32(ids)[t];
        if (id < 0 || id >= w->n) {
            st = rlhf__ref_fail(r, RLHF_E_INVALID, "ids[%llu] = %d, allowed is 0 to %d",
                                (unsigned long long)t, id, w->n - 1);
            break;
        }
        const struct rlhf__ref_part *p = part_of(w, id);
        for (uint64_t c = 0; c < k; c++)
            rlhf__ref_f32(out)[t * k + c] =
                (float)scale * row_element(p->format, row_blocks(w, p, id), c);
    }
    return rlhf__ref_leave(r, st);
}

void rlhf__ref_fill_quantised(rlhf_compute *t) {
    t->weight_create_quantised = weight_create_quantised;
    t->weight_put = weight_put;
    t->weight_quantised_bytes = weight_quantised_bytes;
    t->embed_weight = embed_weight;
}
