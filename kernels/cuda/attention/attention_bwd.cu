// attention_bwd.cu: the first step of backward attention. It computes delta, the sum of dout * out
// for each query and head. The kernels for dq and for dk and dv then subtract delta.
#include "attention/attention.h"

#include <string.h>

enum { THREADS = 128, GROUP = 8 }; // GROUP: number of lanes per query and head

// Each lane adds up chunks of 16 bytes of the head. Then the sums of the lanes are added.
template <class T>
static __global__ void __launch_bounds__(THREADS) attention_delta(struct rlhf__attn_bwd_args b) {
    enum { CHUNK = 16 / sizeof(T) };
    const struct rlhf__attn_args &a = b.a;
    const int64_t i = (int64_t)blockIdx.x * (THREADS / GROUP) + threadIdx.x / GROUP;
    float sum = 0.0f;
    if (i < (int64_t)a.rows.total * a.heads) {
        const int64_t at = i / a.heads * a.out_stride + i % a.heads * a.head_dim;
        const T *x = (const T *)a.out + at, *y = (const T *)b.dout + at;
        for (int c = (int)threadIdx.x % GROUP * CHUNK; c < a.head_dim; c += GROUP * CHUNK) {
            T u[CHUNK], w[CHUNK];
            if (a.wide) {
                const uint4 u4 = *(const uint4 *)(x + c), w4 = *(const uint4 *)(y + c);
                memcpy(u, &u4, sizeof u);
                memcpy(w, &w4, sizeof w);
            } else
                for (int e = 0; e < CHUNK; e++) {
                    u[e] = c + e < a.head_dim ? x[c + e] : (T)0;
                    w[e] = c + e < a.head_dim ? y[c + e] : (T)0;
                }
#pragma unroll
            for (int e = 0; e < CHUNK; e++)
                sum = fmaf(rlhf__get(u, e), rlhf__get(w, e), sum);
        }
    }
    for (int m = GROUP / 2; m; m >>= 1)
        sum += __shfl_xor_sync(~0u, sum, m);
    if (threadIdx.x % GROUP == 0 && i < (int64_t)a.rows.total * a.heads) b.delta[i] = sum;
}

template <class T>
static rlhf_status make_delta(struct rlhf__cuda *cu, const struct rlhf__attn_bwd_args *b) {
    const uint64_t sums = (uint64_t)b->a.rows.total * (uint64_t)b->a.heads;
    const unsigned blocks = (unsigned)((sums + THREADS / GROUP - 1) / (THREADS / GROUP));
    if (blocks) RUN(cu, attention_delta<T>, dim3(blocks), dim3(THREADS), 0, *b);
    return RLHF_OK;
}

uint64_t rlhf__cuda_attention_bwd_bytes(uint32_t total, int32_t heads) {
    return (uint64_t)total * (uint64_t)heads * sizeof(float);
}

rlhf_status rlhf__cuda_attention_bwd(struct rlhf__cuda *cu, struct rlhf__attn_bwd_args *b,
                                     int32_t dtype) {
    void *p;
    RLHF_TRY(rlhf__cuda_workspace(cu, RLHF__CUDA_WS_ATTN,
                                  rlhf__cuda_attention_bwd_bytes(b->a.rows.total, b->a.heads), &p));
    b->delta = (float *)p;
    if (dtype == RLHF_BF16) {
        RLHF_TRY(make_delta<rlhf__bf16>(cu, b));
        return rlhf__cuda_attention_bwd_bf16(cu, b);
    }
    RLHF_TRY(make_delta<float>(cu, b));
    return rlhf__cuda_attention_bwd_f32(cu, b);
}
