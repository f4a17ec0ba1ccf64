// row_move.c: operations that move rows: gather, scatter_add, pooling, the KV cache.
#include "attention/ragged.h"
#include "machine/split.h"
#include "machine/table.h"

#include <string.h>

static rlhf_status gather(void *ctx, rlhf_dev out, rlhf_dev x, rlhf_dev idx, uint32_t n, int32_t d,
                          int32_t dtype) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(rlhf__cpu_check_d(cpu, "gather", d));
    const int32_t *ix = rlhf__cpu_i32(idx);
    size_t bytes = (size_t)d * rlhf_dtype_size(dtype);
    int threads = rlhf__split_threads(cpu, (uint64_t)n * (uint64_t)d);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < (int64_t)n; i++)
        memcpy(rlhf__cpu_mem(rlhf_dev_at(out, (size_t)i * bytes)),
               rlhf__cpu_mem(rlhf_dev_at(x, (size_t)ix[i] * bytes)), bytes);
    return RLHF_OK;
}

static rlhf_status scatter_add(void *ctx, rlhf_dev dx, rlhf_dev dy, int32_t dy_dtype, rlhf_dev idx,
                               uint32_t n, int32_t d) {
    struct rlhf__cpu *cpu = ctx;
    RLHF_TRY(rlhf__cpu_check_d(cpu, "scatter_add", d));
    RLHF_TRY(rlhf__cpu_check_dtype(cpu, "scatter_add", dy_dtype));
    const int32_t *ix = rlhf__cpu_i32(idx);
    size_t width = (size_t)d, bytes = width * rlhf_dtype_size(dy_dtype);
    int threads = rlhf__split_threads(cpu, (uint64_t)n * width);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < (int64_t)n; i++)
        cpu->hot.add(rlhf__cpu_f32(dx) + (size_t)ix[i] * width,
                     rlhf__cpu_mem(rlhf_dev_at(dy, (size_t)i * bytes)), dy_dtype == RLHF_BF16,
                     width);
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

static rlhf_status pool(void *ctx, rlhf_dev out, rlhf_dev x, rlhf_dev offset, uint32_t n, int32_t d,
                        int32_t mode) {
    struct rlhf__cpu *cpu = ctx;
    const int32_t *off = rlhf__cpu_i32(offset);
    RLHF_TRY(check_pool(cpu, "pool", off, n, d, mode));
    if (!n) return RLHF_OK;
    size_t width = (size_t)d;
    int threads = rlhf__split_threads(cpu, (uint64_t)off[n] * width);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < (int64_t)n; i++) {
        float *o = rlhf__cpu_f32(out) + (size_t)i * width;
        size_t a = (size_t)off[i], b = (size_t)off[i + 1];
        const float *xf = rlhf__cpu_f32(x);
        if (mode != RLHF_POOL_MEAN) {
            memcpy(o, xf + (mode == RLHF_POOL_FIRST ? a : b - 1) * width, width * sizeof *o);
            continue;
        }
        memset(o, 0, width * sizeof *o);
        cpu->hot.sum_parts(o, xf + a * width, width, b - a, width);
        for (size_t c = 0; c < width; c++)
            o[c] /= (float)(b - a);
    }
    return RLHF_OK;
}

static rlhf_status pool_bwd(void *ctx, rlhf_dev dx, rlhf_dev dout, rlhf_dev offset, uint32_t n,
                            int32_t d, int32_t mode) {
    struct rlhf__cpu *cpu = ctx;
    const int32_t *off = rlhf__cpu_i32(offset);
    RLHF_TRY(check_pool(cpu, "pool_bwd", off, n, d, mode));
    if (!n) return RLHF_OK;
    size_t width = (size_t)d;
    int threads = rlhf__split_threads(cpu, (uint64_t)off[n] * width);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < (int64_t)n; i++) {
        const float *g = rlhf__cpu_f32(dout) + (size_t)i * width;
        size_t a = (size_t)off[i], b = (size_t)off[i + 1];
        for (size_t t = a; t < b; t++) {
            float *o = rlhf__cpu_f32(dx) + t * width;
            int one = (mode == RLHF_POOL_FIRST && t == a) || (mode == RLHF_POOL_LAST && t == b - 1);
            if (one)
                memcpy(o, g, width * sizeof *o);
            else if (mode != RLHF_POOL_MEAN)
                memset(o, 0, width * sizeof *o);
            else
                for (size_t c = 0; c < width; c++)
                    o[c] = g[c] / (float)(b - a);
        }
    }
    return RLHF_OK;
}

static rlhf_status kv_store(void *ctx, rlhf_dev k_cache, rlhf_dev v_cache, rlhf_dev k, rlhf_dev v,
                            int64_t kv_src_stride, const rlhf_ragged *from_caller, int32_t d,
                            int32_t dtype) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_ragged own_rows;
    const rlhf_ragged *rows = &own_rows;
    RLHF_TRY(rlhf__cpu_check_d(cpu, "kv_store", d));
    RLHF_TRY(rlhf__cpu_check_dtype(cpu, "kv_store", dtype));
    // Only the places of the new tokens matter: a window of 1 sees nothing before them.
    RLHF_TRY(rlhf__cpu_read_ragged(cpu, "kv_store", &own_rows, from_caller, 1));
    const int32_t *off = rlhf__cpu_i32(rows->offset), *start = rlhf__cpu_i32(rows->start);
    const int32_t *base = rlhf__cpu_i32(rows->kv_base), *shared = rlhf__cpu_i32(rows->prefix_len);
    size_t size = rlhf_dtype_size(dtype), bytes = (size_t)d * size;
    size_t src_bytes = (size_t)kv_src_stride * size;
    int threads = rlhf__split_threads(cpu, (uint64_t)rows->total * (uint64_t)d);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < (int64_t)rows->n; i++)
        for (int32_t t = off[i]; t < off[i + 1]; t++) {
            int32_t own = start[i] - (shared ? shared[i] : 0) + (t - off[i]);
            size_t to = (size_t)(base[i] + own) * bytes, from = (size_t)t * src_bytes;
            memcpy(rlhf__cpu_mem(rlhf_dev_at(k_cache, to)), rlhf__cpu_mem(rlhf_dev_at(k, from)),
                   bytes);
            memcpy(rlhf__cpu_mem(rlhf_dev_at(v_cache, to)), rlhf__cpu_mem(rlhf_dev_at(v, from)),
                   bytes);
        }
    return RLHF_OK;
}

void rlhf__cpu_fill_move(rlhf_compute *t) {
    t->gather = gather;
    t->scatter_add = scatter_add;
    t->pool = pool;
    t->pool_bwd = pool_bwd;
    t->kv_store = kv_store;
}
