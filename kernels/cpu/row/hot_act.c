// hot_act.c: the loops of the activations (act_vec.h), their derivatives, and gated units. Compiled
// once per instruction-set level (vec.h).
#include "act_vec.h"
#include "machine/hot.h"

// f(a) = a, for the product of two matrices.
static inline vf plain(vf x) { return x; }
static inline vf plain_d(vf x, vf dy) {
    (void)x;
    return dy;
}

// The loops of one activation f in bf16 and in f32, for full vectors and the tail.
#define FORWARD(f)                                                                                 \
    static void f##_bf16(uint16_t *out, const uint16_t *x, size_t n) {                             \
        size_t i = 0;                                                                              \
        for (; i + VF_LANES <= n; i += VF_LANES)                                                   \
            vf_store_bf16(out + i, f(vf_load_bf16(x + i)));                                        \
        if (i < n) vf_store_bf16_n(out + i, f(vf_load_bf16_n(x + i, n - i)), n - i);               \
    }                                                                                              \
    static void f##_f32(float *out, const float *x, size_t n) {                                    \
        size_t i = 0;                                                                              \
        for (; i + VF_LANES <= n; i += VF_LANES)                                                   \
            vf_store(out + i, f(vf_load(x + i)));                                                  \
        if (i < n) vf_store_n(out + i, f(vf_load_n(x + i, n - i)), n - i);                         \
    }
#define BACKWARD(f)                                                                                \
    static void f##_bf16(uint16_t *dx, const uint16_t *dy, const uint16_t *x, size_t n) {          \
        size_t i = 0;                                                                              \
        for (; i + VF_LANES <= n; i += VF_LANES)                                                   \
            vf_store_bf16(dx + i, f(vf_load_bf16(x + i), vf_load_bf16(dy + i)));                   \
        size_t m = n - i;                                                                          \
        if (m) vf_store_bf16_n(dx + i, f(vf_load_bf16_n(x + i, m), vf_load_bf16_n(dy + i, m)), m); \
    }                                                                                              \
    static void f##_f32(float *dx, const float *dy, const float *x, size_t n) {                    \
        size_t i = 0;                                                                              \
        for (; i + VF_LANES <= n; i += VF_LANES)                                                   \
            vf_store(dx + i, f(vf_load(x + i), vf_load(dy + i)));                                  \
        size_t m = n - i;                                                                          \
        if (m) vf_store_n(dx + i, f(vf_load_n(x + i, m), vf_load_n(dy + i, m)), m);                \
    }

// Gated units: out = f(a) b; da = dy b f'(a), db = dy f(a). da may be the same array as a, and db
// the same as b.
#define GATED(f)                                                                                   \
    INLINE void f##_gate_vec(void *out, const void *a, const void *b, const int bf16, size_t i,    \
                             size_t m) {                                                           \
        store_any(out, bf16, i, vf_mul(f(load_any(a, bf16, i, m)), load_any(b, bf16, i, m)), m);   \
    }                                                                                              \
    INLINE void f##_gate_loop(void *out, const void *a, const void *b, const int bf16, size_t n) { \
        size_t i = 0;                                                                              \
        for (; i + VF_LANES <= n; i += VF_LANES)                                                   \
            f##_gate_vec(out, a, b, bf16, i, VF_LANES);                                            \
        if (i < n) f##_gate_vec(out, a, b, bf16, i, n - i);                                        \
    }                                                                                              \
    INLINE void f##_gate_vec_bwd(void *da, void *db, const void *dy, const void *a, const void *b, \
                                 const int bf16, size_t i, size_t m) {                             \
        vf x = load_any(a, bf16, i, m), d = load_any(dy, bf16, i, m);                              \
        vf dx = f##_d(x, vf_mul(d, load_any(b, bf16, i, m)));                                      \
        store_any(da, bf16, i, dx, m);                                                             \
        store_any(db, bf16, i, vf_mul(d, f(x)), m);                                                \
    }                                                                                              \
    INLINE void f##_gate_loop_bwd(void *da, void *db, const void *dy, const void *a,               \
                                  const void *b, const int bf16, size_t n) {                       \
        size_t i = 0;                                                                              \
        for (; i + VF_LANES <= n; i += VF_LANES)                                                   \
            f##_gate_vec_bwd(da, db, dy, a, b, bf16, i, VF_LANES);                                 \
        if (i < n) f##_gate_vec_bwd(da, db, dy, a, b, bf16, i, n - i);                             \
    }                                                                                              \
    static void f##_gate(void *out, const void *a, const void *b, int bf16, size_t n) {            \
        bf16 ? f##_gate_loop(out, a, b, 1, n) : f##_gate_loop(out, a, b, 0, n);                    \
    }                                                                                              \
    static void f##_gate_bwd(void *da, void *db, const void *dy, const void *a, const void *b,     \
                             int bf16, size_t n) {                                                 \
        bf16 ? f##_gate_loop_bwd(da, db, dy, a, b, 1, n)                                           \
             : f##_gate_loop_bwd(da, db, dy, a, b, 0, n);                                          \
    }

#define KIND(f) FORWARD(f) BACKWARD(f##_d) GATED(f)
KIND(relu)
KIND(relu2)
KIND(gelu_tanh)
KIND(gelu_erf)
KIND(silu)
KIND(sigmoid)
GATED(plain)

void RLHF__HOT(act)(void *out, const void *x, int kind, int bf16, size_t n) {
    switch (kind) {
    case RLHF_ACT_GELU_TANH:
        bf16 ? gelu_tanh_bf16(out, x, n) : gelu_tanh_f32(out, x, n);
        break;
    case RLHF_ACT_GELU_ERF:
        bf16 ? gelu_erf_bf16(out, x, n) : gelu_erf_f32(out, x, n);
        break;
    case RLHF_ACT_SILU:
        bf16 ? silu_bf16(out, x, n) : silu_f32(out, x, n);
        break;
    case RLHF_ACT_RELU2:
        bf16 ? relu2_bf16(out, x, n) : relu2_f32(out, x, n);
        break;
    case RLHF_ACT_SIGMOID:
        bf16 ? sigmoid_bf16(out, x, n) : sigmoid_f32(out, x, n);
        break;
    default:
        bf16 ? relu_bf16(out, x, n) : relu_f32(out, x, n);
        break;
    }
}

void RLHF__HOT(act_bwd)(void *dx, const void *dy, const void *x, int kind, int bf16, size_t n) {
    switch (kind) {
    case RLHF_ACT_GELU_TANH:
        bf16 ? gelu_tanh_d_bf16(dx, dy, x, n) : gelu_tanh_d_f32(dx, dy, x, n);
        break;
    case RLHF_ACT_GELU_ERF:
        bf16 ? gelu_erf_d_bf16(dx, dy, x, n) : gelu_erf_d_f32(dx, dy, x, n);
        break;
    case RLHF_ACT_SILU:
        bf16 ? silu_d_bf16(dx, dy, x, n) : silu_d_f32(dx, dy, x, n);
        break;
    case RLHF_ACT_RELU2:
        bf16 ? relu2_d_bf16(dx, dy, x, n) : relu2_d_f32(dx, dy, x, n);
        break;
    case RLHF_ACT_SIGMOID:
        bf16 ? sigmoid_d_bf16(dx, dy, x, n) : sigmoid_d_f32(dx, dy, x, n);
        break;
    default:
        bf16 ? relu_d_bf16(dx, dy, x, n) : relu_d_f32(dx, dy, x, n);
        break;
    }
}

void RLHF__HOT(gate)(void *out, const void *a, const void *b, int kind, int bf16, size_t n) {
    switch (kind) {
    case RLHF_ACT_GELU_TANH:
        gelu_tanh_gate(out, a, b, bf16, n);
        break;
    case RLHF_ACT_GELU_ERF:
        gelu_erf_gate(out, a, b, bf16, n);
        break;
    case RLHF_ACT_SILU:
        silu_gate(out, a, b, bf16, n);
        break;
    case RLHF_ACT_RELU2:
        relu2_gate(out, a, b, bf16, n);
        break;
    case RLHF_ACT_SIGMOID:
        sigmoid_gate(out, a, b, bf16, n);
        break;
    case 0:
        plain_gate(out, a, b, bf16, n);
        break;
    default:
        relu_gate(out, a, b, bf16, n);
        break;
    }
}

void RLHF__HOT(gate_bwd)(void *da, void *db, const void *dy, const void *a, const void *b, int kind,
                         int bf16, size_t n) {
    switch (kind) {
    case RLHF_ACT_GELU_TANH:
        gelu_tanh_gate_bwd(da, db, dy, a, b, bf16, n);
        break;
    case RLHF_ACT_GELU_ERF:
        gelu_erf_gate_bwd(da, db, dy, a, b, bf16, n);
        break;
    case RLHF_ACT_SILU:
        silu_gate_bwd(da, db, dy, a, b, bf16, n);
        break;
    case RLHF_ACT_RELU2:
        relu2_gate_bwd(da, db, dy, a, b, bf16, n);
        break;
    case RLHF_ACT_SIGMOID:
        sigmoid_gate_bwd(da, db, dy, a, b, bf16, n);
        break;
    case 0:
        plain_gate_bwd(da, db, dy, a, b, bf16, n);
        break;
    default:
        relu_gate_bwd(da, db, dy, a, b, bf16, n);
        break;
    }
}
