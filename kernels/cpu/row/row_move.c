// row_move.c: operations that move rows: gather, scatter_add, pooling, the KV cache.
#include "attention/ragged.h"
#include "machine/split.h"
#include "machine/table.h"

#include <string.h>

// Rows of `width` elements, with an index or offsets.
struct rows {
    const struct rlhf__cpu *cpu;
    rlhf_dev to, from;
    const int32_t *at;
    size_t width, bytes; // bytes: of a row of `from`
    int32_t bf16, mode;  // bf16: 1 if `from` is bf16; mode: of pool
};

static void gather_row(const void *job, int64_t i) {
    const struct rows *r = job;
    memcpy(rlhf__cpu_mem(rlhf_dev_at(r->to, (size_t)i * r->bytes)),
           rlhf__cpu_mem(rlhf_dev_at(r->from, (size_t)r->at[i] * r->bytes)), r->bytes);
}

static rlhf_status gather(void *ctx, rlhf_dev out, rlhf_dev x, rlhf_dev idx, uint32_t n, int32_t d,
                          int32_t dtype) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(rlhf__cpu_check_d(cpu, "gather", d));
    const size_t width = (size_t)d;
    rlhf__split_run(cpu, rlhf__split_threads(cpu, n * (uint64_t)width), n, gather_row,
                    &(const struct rows){.to = out,
                                         .from = x,
                                         .at = rlhf__cpu_i32(idx),
                                         .bytes = width * rlhf_dtype_size(dtype)});
    return RLHF_OK;
}

static void scatter_row(const void *job, int64_t i) {
    const struct rows *r = job;
    r->cpu->hot.add(rlhf__cpu_f32(r->to) + (size_t)r->at[i] * r->width,
                    rlhf__cpu_mem(rlhf_dev_at(r->from, (size_t)i * r->bytes)), r->bf16, r->width);
}

static rlhf_status scatter_add(void *ctx, rlhf_dev dx, rlhf_dev dy, int32_t dy_dtype, rlhf_dev idx,
                               uint32_t n, int32_t d) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(rlhf__cpu_check_d(cpu, "scatter_add", d));
    RLHF_TRY(rlhf__cpu_check_dtype(cpu, "scatter_add", dy_dtype));
    const size_t width = (size_t)d;
    rlhf__split_run(cpu, rlhf__split_threads(cpu, n * (uint64_t)width), n, scatter_row,
                    &(const struct rows){cpu, dx, dy, rlhf__cpu_i32(idx), width,
                                         width * rlhf_dtype_size(dy_dtype), dy_dtype == RLHF_BF16,
                                         0});
    return RLHF_OK;
}

static rlhf_status check_pool(struct rlhf__cpu *cpu, const char *op, const int32_t *offset,
                              uint32_t n, int32_t d, int32_t mode) {
    RLHF_TRY(rlhf__cpu_check_d(cpu, op, d));
    if (mode < RLHF_POOL_MEAN || mode > RLHF_POOL_LAST)
        return rlhf__cpu_fail(cpu, RLHF_E_UNSUPPORTED,
                              "%s: mode is %d, known are mean 1, first 2 and last 3", op, mode);
    for (uint32_t i = 0; i < n; i++)
        if (offset[i] < 0 || offset[i + 1] <= offset[i])
            return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: row %u has no tokens (offsets %d, %d)",
                                  op, i, offset[i], offset[i + 1]);
    return RLHF_OK;
}

static void pool_row(const void *job, int64_t i) {
    const struct rows *r = job;
    const size_t width = r->width, a = (size_t)r->at[i], b = (size_t)r->at[i + 1];
    const float *x = rlhf__cpu_f32(r->from);
    float *o = rlhf__cpu_f32(r->to) + (size_t)i * width;
    if (r->mode != RLHF_POOL_MEAN) {
        memcpy(o, x + (r->mode == RLHF_POOL_FIRST ? a : b - 1) * width, width * sizeof *o);
        return;
    }
    memset(o, 0, width * sizeof *o);
    r->cpu->hot.sum_parts(o, x + a * width, width, b - a, width);
    for (size_t c = 0; c < width; c++)
        o[c] /= (float)(b - a);
}

static rlhf_status pool(void *ctx, rlhf_dev out, rlhf_dev x, rlhf_dev offset, uint32_t n, int32_t d,
                        int32_t mode) {
    struct rlhf__cpu *cpu = ctx;
    const int32_t *off = rlhf__cpu_i32(offset);
    RLHF_TRY(check_pool(cpu, "pool", off, n, d, mode));
    if (!n) return RLHF_OK;
    const size_t width = (size_t)d;
    rlhf__split_run(cpu, rlhf__split_threads(cpu, (uint64_t)off[n] * width), n, pool_row,
                    &(const struct rows){cpu, out, x, off, width, 0, 0, mode});
    return RLHF_OK;
}

static void pool_bwd_row(const void *job, int64_t i) {
    const struct rows *r = job;
    const size_t width = r->width, a = (size_t)r->at[i], b = (size_t)r->at[i + 1];
    const float *g = rlhf__cpu_f32(r->from) + (size_t)i * width;
    for (size_t t = a; t < b; t++) {
        float *o = rlhf__cpu_f32(r->to) + t * width;
        if (t == (r->mode == RLHF_POOL_FIRST ? a : b - 1) && r->mode != RLHF_POOL_MEAN)
            memcpy(o, g, width * sizeof *o);
        else if (r->mode != RLHF_POOL_MEAN)
            memset(o, 0, width * sizeof *o);
        else
            for (size_t c = 0; c < width; c++)
                o[c] = g[c] / (float)(b - a);
    }
}

static rlhf_status pool_bwd(void *ctx, rlhf_dev dx, rlhf_dev dout, rlhf_dev offset, uint32_t n,
                            int32_t d, int32_t mode) {
    struct rlhf__cpu *cpu = ctx;
    const int32_t *off = rlhf__cpu_i32(offset);
    RLHF_TRY(check_pool(cpu, "pool_bwd", off, n, d, mode));
    if (!n) return RLHF_OK;
    const size_t width = (size_t)d;
    rlhf__split_run(cpu, rlhf__split_threads(cpu, (uint64_t)off[n] * width), n, pool_bwd_row,
                    &(const struct rows){cpu, dx, dout, off, width, 0, 0, mode});
    return RLHF_OK;
}

struct kv {
    const rlhf_ragged *rows;
    rlhf_dev k_cache, v_cache, k, v;
    size_t bytes, src_bytes; // of a token's keys; from one token of k to the next
};

static void kv_store_row(const void *job, int64_t i) {
    const struct kv *s = job;
    const int32_t *off = rlhf__cpu_i32(s->rows->offset);
    const int32_t *shared = rlhf__cpu_i32(s->rows->prefix_len);
    const int32_t own = rlhf__cpu_i32(s->rows->start)[i] - (shared ? shared[i] : 0);
    for (int32_t t = off[i]; t < off[i + 1]; t++) {
        const int32_t row = rlhf__cpu_i32(s->rows->kv_base)[i] + own + (t - off[i]);
        const size_t to = (size_t)row * s->bytes, from = (size_t)t * s->src_bytes;
        memcpy(rlhf__cpu_mem(rlhf_dev_at(s->k_cache, to)), rlhf__cpu_mem(rlhf_dev_at(s->k, from)),
               s->bytes);
        memcpy(rlhf__cpu_mem(rlhf_dev_at(s->v_cache, to)), rlhf__cpu_mem(rlhf_dev_at(s->v, from)),
               s->bytes);
    }
}

static rlhf_status kv_store(void *ctx, rlhf_dev k_cache, rlhf_dev v_cache, rlhf_dev k, rlhf_dev v,
                            int64_t kv_src_stride, const rlhf_ragged *from_caller, int32_t d,
                            int32_t dtype) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_ragged rows;
    RLHF_TRY(rlhf__cpu_check_d(cpu, "kv_store", d));
    RLHF_TRY(rlhf__cpu_check_dtype(cpu, "kv_store", dtype));
    // Only the places of the new tokens matter: a window of 1 sees nothing before them.
    RLHF_TRY(rlhf__cpu_read_ragged(cpu, "kv_store", &rows, from_caller, 1));
    const size_t size = rlhf_dtype_size(dtype);
    rlhf__split_run(cpu, rlhf__split_threads(cpu, (uint64_t)rows.total * (uint64_t)d), rows.n,
                    kv_store_row,
                    &(const struct kv){&rows, k_cache, v_cache, k, v, (size_t)d * size,
                                       (size_t)kv_src_stride * size});
    return RLHF_OK;
}

void rlhf__cpu_fill_move(rlhf_compute *t) {
    t->gather = gather;
    t->scatter_add = scatter_add;
    t->pool = pool;
    t->pool_bwd = pool_bwd;
    t->kv_store = kv_store;
}
