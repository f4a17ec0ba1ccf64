// multiply.cu: the product of two matrices whose columns are in blocks, and its derivative.
#include "machine/table.h"
#include "row/act.h"

enum { THREADS = 256 };

namespace {
struct columns_args {
    const void *x, *gate, *dout;
    void *out, *dx, *dgate;
    int64_t x_stride, gate_stride, out_stride, x_step, gate_step, out_step;
    uint64_t n;          // elements
    uint32_t width, row; // of a block; of a row
    int32_t act;
};
} // namespace

// out = x f(gate); without a gate, out = x
template <class T> static __global__ void __launch_bounds__(THREADS) multiply_all(columns_args a) {
    const uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= a.n) return;
    const uint64_t t = i / a.row, b = i % a.row / a.width, c = i % a.width;
    const uint64_t x = t * a.x_stride + b * a.x_step + c;
    const uint64_t out = t * a.out_stride + b * a.out_step + c;
    if (!a.gate) {
        ((T *)a.out)[out] = ((const T *)a.x)[x];
        return;
    }
    const float z = rlhf__get((const T *)a.gate, t * a.gate_stride + b * a.gate_step + c);
    rlhf__put((T *)a.out, out, rlhf__get((const T *)a.x, x) * rlhf__act_any(a.act, z));
}

template <class T>
static __global__ void __launch_bounds__(THREADS) multiply_bwd_all(columns_args a) {
    const uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= a.n) return;
    const uint64_t t = i / a.row, b = i % a.row / a.width, c = i % a.width;
    const uint64_t x = t * a.x_stride + b * a.x_step + c;
    const uint64_t gate = t * a.gate_stride + b * a.gate_step + c;
    const float d = rlhf__get((const T *)a.dout, t * a.out_stride + b * a.out_step + c);
    const float z = rlhf__get((const T *)a.gate, gate), v = rlhf__get((const T *)a.x, x);
    rlhf__put((T *)a.dx, x, d * rlhf__act_any(a.act, z));
    rlhf__put((T *)a.dgate, gate, rlhf__act_any_back(a.act, z, d * v));
}

// ---- the table's functions ----

// `gated`: the layout of the gate is checked, too.
static rlhf_status read_columns(struct rlhf__cuda *cu, const char *op, rlhf_columns *c,
                                const rlhf_columns *from, bool gated) {
    RLHF_TRY(rlhf__cuda_copy_in(cu, op, c, sizeof *c, from, RLHF_SIZE_TO(rlhf_columns, out_step)));
    RLHF_TRY(rlhf__cuda_check_dtype(cu, op, c->dtype));
    RLHF_TRY(rlhf__cuda_check_act(cu, op, c->act, 1));
    if (c->blocks < 1 || c->width < 1)
        return rlhf__cuda_fail(cu, RLHF_E_INVALID, "%s: %d blocks of %d columns, must be positive",
                               op, c->blocks, c->width);
    const int64_t strides[] = {c->x_stride, c->out_stride, c->gate_stride};
    const int64_t steps[] = {c->x_step, c->out_step, c->gate_step};
    for (int i = 0; i < 2 + gated; i++) {
        if ((c->blocks == 1 || steps[i] >= c->width) &&
            strides[i] >= (c->blocks - 1) * steps[i] + c->width)
            continue;
        return rlhf__cuda_fail(cu, RLHF_E_INVALID,
                               "%s: %d blocks of %d columns do not fit step %lld and stride %lld",
                               op, c->blocks, c->width, (long long)steps[i], (long long)strides[i]);
    }
    return RLHF_OK;
}

static columns_args args_of(const rlhf_columns &c, rlhf_dev x, rlhf_dev gate, uint32_t rows) {
    columns_args a = {};
    a.x = rlhf__cuda_mem(x);
    a.gate = rlhf__cuda_mem(gate);
    a.x_stride = c.x_stride, a.gate_stride = c.gate_stride, a.out_stride = c.out_stride;
    a.x_step = c.x_step, a.gate_step = c.gate_step, a.out_step = c.out_step;
    a.width = (uint32_t)c.width;
    a.row = (uint32_t)c.blocks * a.width;
    a.n = (uint64_t)rows * a.row;
    a.act = c.act;
    return a;
}

static void wrote(struct rlhf__cuda *cu, const void *p, const rlhf_columns &c, uint32_t rows,
                  int64_t stride, int64_t step) {
    const uint64_t last = (uint64_t)(rows - 1) * (uint64_t)stride +
                          (uint64_t)(c.blocks - 1) * (uint64_t)step + (uint64_t)c.width;
    rlhf__cuda_wrote(cu, p, last * rlhf_dtype_size(c.dtype));
}

static dim3 grid_of(const columns_args &a) {
    return dim3((unsigned)((a.n + THREADS - 1) / THREADS));
}

static rlhf_status multiply(void *ctx, const rlhf_columns *from, rlhf_dev out, rlhf_dev x,
                            rlhf_dev gate, uint32_t rows) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    rlhf_columns c;
    RLHF_TRY(read_columns(cu, "multiply", &c, from, gate != NULL));
    if (!rows) return RLHF_OK;
    columns_args a = args_of(c, x, gate, rows);
    a.out = rlhf__cuda_mem(out);
    wrote(cu, a.out, c, rows, c.out_stride, c.out_step);
    RUN(cu, (c.dtype == RLHF_BF16 ? multiply_all<rlhf__bf16> : multiply_all<float>), grid_of(a),
        dim3(THREADS), 0, a);
    return rlhf__cuda_done(cu);
}

static rlhf_status multiply_bwd(void *ctx, const rlhf_columns *from, rlhf_dev dx, rlhf_dev dgate,
                                rlhf_dev dout, rlhf_dev x, rlhf_dev gate, uint32_t rows) {
    struct rlhf__cuda *cu = (struct rlhf__cuda *)ctx;
    rlhf_columns c;
    RLHF_TRY(read_columns(cu, "multiply_bwd", &c, from, true));
    if (!rows) return RLHF_OK;
    columns_args a = args_of(c, x, gate, rows);
    a.dout = rlhf__cuda_mem(dout);
    a.dx = rlhf__cuda_mem(dx);
    a.dgate = rlhf__cuda_mem(dgate);
    wrote(cu, a.dx, c, rows, c.x_stride, c.x_step);
    wrote(cu, a.dgate, c, rows, c.gate_stride, c.gate_step);
    RUN(cu, (c.dtype == RLHF_BF16 ? multiply_bwd_all<rlhf__bf16> : multiply_bwd_all<float>),
        grid_of(a), dim3(THREADS), 0, a);
    return rlhf__cuda_done(cu);
}

rlhf_status rlhf__cuda_supports_multiply(struct rlhf__cuda *cu, const char *op,
                                         const rlhf_columns *from) {
    rlhf_columns c;
    return read_columns(cu, op, &c, from, from->gate_stride != 0);
}

void rlhf__cuda_fill_multiply(rlhf_compute *t) {
    t->multiply = multiply;
    t->multiply_bwd = multiply_bwd;
}
