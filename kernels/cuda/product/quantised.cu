// quantised.cu: weights whose rows stay quantised (rlhf_quantised), and embed_weight. The blocks
// are in device memory as they are in a file. Before a GEMM, they are dequantised to a workspace in
// the layout of weight.h, so the GEMM is that of an ordinary weight.
#include "machine/table.h"
#include "product/lt.h"
#include "product/weight.h"
#include "row/lanes.h"

#include <new>

enum { THREADS = 128 };

// ---- blocks (enum rlhf_format) ----

static __device__ __forceinline__ float f16(const uint8_t *p) {
    const unsigned bits = p[0] | (unsigned)p[1] << 8, number = bits & 0x7fff;
    const unsigned sign = (bits & 0x8000) << 16;
    if (number < 0x400) // below 2^-14: a multiple of 2^-24
        return __uint_as_float(__float_as_uint((float)number * 0x1p-24f) | sign);
    const unsigned bias = number < 0x7c00 ? 112u << 23 : 224u << 23; // infinity stays infinity
    return __uint_as_float(((number << 13) + bias) | sign);
}

// Element i of numbers of 4 bits: `half` bytes have the low bits of as many elements, then the high
// bits of the next ones.
static __device__ __forceinline__ int four_bits(const uint8_t *q, unsigned i, unsigned half) {
    const unsigned byte = q[i / (2 * half) * half + i % half];
    return (int)(i % (2 * half) < half ? byte & 15 : byte >> 4);
}

// Element i of 32 integers of 5 bits: the high bits, then the low bits.
static __device__ __forceinline__ int five_bits(const uint8_t *q, unsigned i) {
    return four_bits(q + 4, i, 16) | (q[i / 8] >> i % 8 & 1) << 4;
}

static __device__ __forceinline__ float q4_k(const uint8_t *b, unsigned i) {
    const uint8_t *s = b + 4;
    const unsigned run = i / 32;
    const unsigned scale =
        run < 4 ? s[run] & 63u : (s[4 + run] & 15u) | (unsigned)s[run - 4] >> 6 << 4;
    const unsigned min =
        run < 4 ? s[4 + run] & 63u : (unsigned)s[4 + run] >> 4 | (unsigned)s[run] >> 6 << 4;
    const float d = f16(b) * (float)scale, m = f16(b + 2) * (float)min;
    const float product = d * (float)four_bits(b + 16, i, 32);
    return product - m;
}

static __device__ __forceinline__ float q6_k(const uint8_t *b, unsigned i) {
    const unsigned high = b[128 + i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3u;
    const int q = four_bits(b, i, 64) | (int)(high << 4);
    const float d = f16(b + 208) * (float)(int8_t)b[192 + i / 16];
    return d * (float)(q - 32);
}

// Element c of a row.
static __device__ __forceinline__ float element(const struct rlhf__cuda_part &p, const uint8_t *row,
                                                unsigned c) {
    const unsigned i = c % p.elements;
    const uint8_t *b = row + (uint64_t)(c / p.elements) * p.block_bytes;
    switch (p.format) {
    case RLHF_FORMAT_Q8_0:
        return (float)(int8_t)b[2 + i] * f16(b);
    case RLHF_FORMAT_Q4_0:
        return f16(b) * (float)(four_bits(b + 2, i, 16) - 8);
    case RLHF_FORMAT_Q4_1: {
        const float product = f16(b) * (float)four_bits(b + 4, i, 16);
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

// The part of a row. Few weights have more than three.
static __device__ __forceinline__ const struct rlhf__cuda_part &
part_of(const struct rlhf__cuda_part *part, unsigned row) {
    while (row >= part->from + part->count)
        part++;
    return *part;
}

static __device__ __forceinline__ const uint8_t *row_of(const struct rlhf__cuda_part &p,
                                                        const uint8_t *blocks, unsigned row) {
    return blocks + p.at + (uint64_t)(row - p.from) * p.row_bytes;
}

// A block of threads fills one row of the layout of weight.h, including its padding.
template <class T>
static __global__ void __launch_bounds__(THREADS)
    dequantise(T *to, const uint8_t *blocks, const struct rlhf__cuda_part *part, unsigned k,
               unsigned n, unsigned k_pad) {
    const unsigned row = blockIdx.x;
    T *out = to + (uint64_t)row * k_pad;
    if (row >= n) {
        for (unsigned c = threadIdx.x; c < k_pad; c += THREADS)
            rlhf__put(out, c, 0.0f);
        return;
    }
    const struct rlhf__cuda_part p = part_of(part, row);
    const uint8_t *from = row_of(p, blocks, row);
    for (unsigned c = threadIdx.x; c < k_pad; c += THREADS)
        rlhf__put(out, c, c < k ? element(p, from, c) : 0.0f);
}

rlhf_status rlhf__cuda_weight_values(struct rlhf__cuda *cu, const rlhf_weight *w,
                                     const void **values) {
    *values = w->ptr;
    if (!w->n_parts) return RLHF_OK;
    void *p = NULL;
    RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_WEIGHT, rlhf__cuda_values_bytes(w), &p));
    const dim3 grid((unsigned)w->n_pad);
    const uint8_t *blocks = (const uint8_t *)w->ptr;
    const unsigned k = (unsigned)w->k, n = (unsigned)w->n, k_pad = (unsigned)w->k_pad;
    if (w->dtype == RLHF_BF16)
        RUN(cu, dequantise<rlhf__bf16>, grid, dim3(THREADS), 0, (rlhf__bf16 *)p, blocks, w->part, k,
            n, k_pad);
    else
        RUN(cu, dequantise<float>, grid, dim3(THREADS), 0, (float *)p, blocks, w->part, k, n,
            k_pad);
    *values = p;
    return RLHF_OK;
}

void rlhf__cuda_values_needs(const rlhf_weight *w, struct rlhf__cuda_needs *n) {
    if (w->n_parts) rlhf__cuda_need(n, RLHF__CUDA_WS_WEIGHT, rlhf__cuda_values_bytes(w));
}

rlhf_status rlhf__cuda_weight_dense(struct rlhf__cuda *cu, const char *op, const rlhf_weight *w) {
    if (!w->n_parts) return RLHF_OK;
    return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                           "%s: the weight is quantised: it is filled by weight_put and has no "
                           "gradient",
                           op);
}

// ---- weights ----

static rlhf_status check(struct rlhf__cuda *cu, const char *op, const rlhf_quantised *a) {
    int64_t rows = 0;
    if (!a->n_parts) return rlhf__cuda_fail(cu, RLHF_E_INVALID, "%s: a weight without parts", op);
    for (uint32_t p = 0; p < a->n_parts; p++) {
        const int32_t elements = rlhf_format_elements(a->format[p]);
        if (elements < 2)
            return rlhf__cuda_fail(cu, RLHF_E_UNSUPPORTED,
                                   "%s: part %u has format %d, known are 1 to %d", op, p,
                                   a->format[p], RLHF_FORMAT_Q5_1);
        if (a->k % elements)
            return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                                   "%s: k is %d, but the blocks of part %u have %d elements", op,
                                   a->k, p, elements);
        if (a->count[p] < 1)
            return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                                   "%s: part %u has %d rows, must be at least 1", op, p,
                                   a->count[p]);
        rows += a->count[p];
    }
    if (rows == a->n) return RLHF_OK;
    return rlhf__cuda_fail(cu, RLHF_E_INVALID, "%s: the parts have %lld rows, the weight has %d",
                           op, (long long)rows, a->n);
}

static rlhf_status read_arguments(struct rlhf__cuda *cu, const char *op, rlhf_quantised *a,
                                  const rlhf_quantised *from) {
    RLHF_TRY(rlhf__cuda_copy_in(cu, op, a, sizeof *a, from, RLHF_SIZE_TO(rlhf_quantised, count)));
    RLHF_TRY(rlhf__cuda_weight_check(cu, a->k, a->n, a->dtype, a->flags));
    return check(cu, op, a);
}

static uint64_t blocks_bytes(const rlhf_quantised *a) {
    uint64_t bytes = 0;
    for (uint32_t p = 0; p < a->n_parts; p++)
        bytes += (uint64_t)a->count[p] * rlhf_format_row_bytes(a->format[p], a->k);
    return bytes;
}

static uint64_t weight_quantised_bytes(void *ctx, const rlhf_quantised *from) {
    rlhf_quantised a;
    if (read_arguments((struct rlhf__cuda *)ctx, "weight_quantised_bytes", &a, from) < 0) return 0;
    return blocks_bytes(&a) + a.n_parts * sizeof(struct rlhf__cuda_part);
}

// Allocates the blocks and the parts of w.
static rlhf_status place(struct rlhf__cuda *cu, rlhf_weight *w, const rlhf_quantised *a) {
    const uint64_t bytes = a->n_parts * sizeof *w->part;
    void *p = NULL;
    w->host_part = new (std::nothrow) struct rlhf__cuda_part[a->n_parts];
    if (!w->host_part) return rlhf__cuda_fail(cu, RLHF_E_NOMEM, "out of memory for a weight");
    uint32_t from = 0;
    uint64_t at = 0;
    for (uint32_t i = 0; i < a->n_parts; i++) {
        const uint64_t row = rlhf_format_row_bytes(a->format[i], a->k);
        w->host_part[i] = {a->format[i],
                           from,
                           (uint32_t)a->count[i],
                           (uint32_t)row,
                           (uint32_t)rlhf_format_elements(a->format[i]),
                           (uint32_t)rlhf_format_bytes(a->format[i]),
                           at};
        from += (uint32_t)a->count[i];
        at += (uint64_t)a->count[i] * row;
    }
    RLHF_TRY(rlhf__cuda_mem_alloc(cu, at, &w->ptr));
    RLHF_TRY(rlhf__cuda_mem_alloc(cu, bytes, &p));
    w->part = (struct rlhf__cuda_part *)p;
    return rlhf__cuda_send(cu, p, w->host_part, bytes);
}

static rlhf_status weight_create_quantised(void *ctx, const rlhf_quantised *from,
                                           rlhf_weight **out) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    rlhf_quantised a;
    RLHF_TRY(rlhf__cuda_not_recording(cu, "weight_create_quantised"));
    RLHF_TRY(read_arguments(cu, "weight_create_quantised", &a, from));
    rlhf_weight *w = new (std::nothrow) rlhf_weight();
    if (!w) return rlhf__cuda_fail(cu, RLHF_E_NOMEM, "out of memory for a weight");
    const rlhf_call_weight shape = {a.k, a.n, a.dtype, a.flags | (uint32_t)RLHF_WEIGHT_OUT_IN,
                                    0,   0,   &a};
    *w = rlhf__cuda_weight_shape(&shape);
    const rlhf_status st = place(cu, w, &a);
    if (st < 0) {
        cu->table.weight_destroy(cu, w);
        return st;
    }
    if (a.dtype == RLHF_BF16) cu->bf16_weights = 1;
    *out = w;
    return RLHF_OK;
}

// Prepares the library for the products of w, whose rows are now all there.
static rlhf_status prepare(struct rlhf__cuda *cu, const rlhf_weight *w) {
    const void *values = NULL;
    rlhf_weight dense = *w;
    if (!cu->library) return RLHF_OK;
    RLHF_TRY(rlhf__cuda_weight_values(cu, w, &values));
    dense.ptr = (void *)(uintptr_t)values;
    dense.n_parts = 0;
    return rlhf__lt_prepare(cu, &dense);
}

static rlhf_status weight_put(void *ctx, rlhf_weight *w, int32_t from, int32_t rows,
                              const void *host_blocks) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    RLHF_TRY(rlhf__cuda_not_recording(cu, "weight_put"));
    if (!w->n_parts)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID, "weight_put: the weight is not quantised");
    if (from < 0 || rows < 1 || from > w->n - rows)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                               "weight_put: rows %d and %d more, but the weight has %d", from, rows,
                               w->n);
    const struct rlhf__cuda_part *p = w->host_part;
    while ((uint32_t)from >= p->from + p->count)
        p++;
    if ((uint32_t)(from + rows) > p->from + p->count)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                               "weight_put: rows %d and %d more are of two parts, the first ends "
                               "with row %u",
                               from, rows, p->from + p->count - 1);
    char *to = (char *)w->ptr + p->at + (uint64_t)((uint32_t)from - p->from) * p->row_bytes;
    RLHF_TRY(rlhf__cuda_send(cu, to, host_blocks, (uint64_t)rows * p->row_bytes));
    w->rows_put = rows < w->n - w->rows_put ? w->rows_put + rows : w->n;
    cu->weight_generation++; // the logits that lm_head kept are from the old rows
    if (w->packed || w->rows_put < w->n) return rlhf__cuda_done(cu);
    w->packed = 1;
    RLHF_TRY(prepare(cu, w));
    return rlhf__cuda_done(cu);
}

// ---- embed_weight ----

static __global__ void __launch_bounds__(THREADS)
    embed_rows(float *out, const int32_t *ids, const uint8_t *blocks,
               const struct rlhf__cuda_part *part, float scale, unsigned k, unsigned n,
               struct rlhf__fault *fault) {
    const unsigned t = blockIdx.x;
    const int32_t id = ids[t];
    if (id < 0 || (unsigned)id >= n) {
        if (threadIdx.x == 0)
            rlhf__fault_raise(fault, RLHF__FAULT_EMBED_WEIGHT_ID, (long long)t, id, n);
        return;
    }
    const struct rlhf__cuda_part p = part_of(part, (unsigned)id);
    const uint8_t *from = row_of(p, blocks, (unsigned)id);
    for (unsigned c = threadIdx.x; c < k; c += THREADS)
        out[(uint64_t)t * k + c] = scale * element(p, from, c);
}

static rlhf_status embed_weight(void *ctx, rlhf_dev out, rlhf_dev ids, const rlhf_weight *w,
                                double scale, uint32_t rows) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    if (!w->n_parts)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID, "embed_weight: the weight is not quantised");
    RLHF_TRY(rlhf__cuda_weight_packed(cu, "embed_weight", w));
    if (!rows) return RLHF_OK;
    rlhf__cuda_wrote(cu, rlhf__cuda_mem(out), rows * (uint64_t)w->k * sizeof(float));
    RUN(cu, embed_rows, dim3(rows), dim3(THREADS), 0, rlhf__cuda_f32(out), rlhf__cuda_i32(ids),
        (const uint8_t *)w->ptr, w->part, (float)scale, (unsigned)w->k, (unsigned)w->n, cu->fault);
    return rlhf__cuda_done(cu);
}

void rlhf__cuda_fill_quantised(rlhf_compute *t) {
    t->weight_create_quantised = weight_create_quantised;
    t->weight_put = weight_put;
    t->weight_quantised_bytes = weight_quantised_bytes;
    t->embed_weight = embed_weight;
}
