// vec_parts.h: the 16 lanes of vec.h as several machine vectors (vp). Include vec.h
// instead. Lane i of a vf is lane i % VP_LANES of part i / VP_LANES. The operations are written out
// for each part, because the compiler keeps the parts in registers only if their indices are
// constants.
#ifndef RLHF_KERNELS_CPU_MACHINE_VEC_PARTS_H
#define RLHF_KERNELS_CPU_MACHINE_VEC_PARTS_H

#define VF_LANES 16
#define VF_PARTS (VF_LANES / VP_LANES)

typedef struct {
    vp p[VF_PARTS];
} vf;

// A vf whose part i is e(i).
#if VF_PARTS == 2
#define VF__PARTS(e) ((vf){{e(0), e(1)}})
#else
#define VF__PARTS(e) ((vf){{e(0), e(1), e(2), e(3)}})
#endif

// Apply a function f of vp to each part. The arguments must be the variables a, b, c and d.
#define VF__1(i, f) f(a.p[i])
#define VF__2(i, f) f(a.p[i], b.p[i])
#define VF__3(i, f) f(a.p[i], b.p[i], c.p[i])
#define VF__4(i, f) f(a.p[i], b.p[i], c.p[i], d.p[i])

static inline vf vf_zero(void) {
#define E(i) vp_zero()
    return VF__PARTS(E);
#undef E
}
static inline vf vf_set1(float x) {
#define E(i) vp_set1(x)
    return VF__PARTS(E);
#undef E
}
static inline vf vf_load(const float *p) {
#define E(i) vp_load(p + (size_t)(i)*VP_LANES)
    return VF__PARTS(E);
#undef E
}
static inline vf vf_load_bf16(const uint16_t *p) {
#define E(i) vp_load_bf16(p + (size_t)(i)*VP_LANES)
    return VF__PARTS(E);
#undef E
}
static inline void vf_store(float *p, vf v) {
    vp_store(p, v.p[0]);
    vp_store(p + VP_LANES, v.p[1]);
#if VF_PARTS == 4
    vp_store(p + (size_t)2 * VP_LANES, v.p[2]);
    vp_store(p + (size_t)3 * VP_LANES, v.p[3]);
#endif
}
static inline void vf_store_bf16(uint16_t *p, vf v) {
    vp_store_bf16(p, v.p[0]);
    vp_store_bf16(p + VP_LANES, v.p[1]);
#if VF_PARTS == 4
    vp_store_bf16(p + (size_t)2 * VP_LANES, v.p[2]);
    vp_store_bf16(p + (size_t)3 * VP_LANES, v.p[3]);
#endif
}

// The number of lanes of part i among the first n lanes.
static inline size_t vf__lanes_of(size_t n, size_t i) {
    const size_t at = i * VP_LANES;
    return n <= at ? 0 : n - at < VP_LANES ? n - at : VP_LANES;
}
#ifdef VP_MASKED_F32
#define VF_MASKED_F32
static inline vf vf_load_n(const float *p, size_t n) {
#define E(i) vp_load_n(p + (size_t)(i)*VP_LANES, vf__lanes_of(n, i))
    return VF__PARTS(E);
#undef E
}
static inline void vf_store_n(float *p, vf v, size_t n) {
    vp_store_n(p, v.p[0], vf__lanes_of(n, 0));
    vp_store_n(p + VP_LANES, v.p[1], vf__lanes_of(n, 1));
#if VF_PARTS == 4
    vp_store_n(p + (size_t)2 * VP_LANES, v.p[2], vf__lanes_of(n, 2));
    vp_store_n(p + (size_t)3 * VP_LANES, v.p[3], vf__lanes_of(n, 3));
#endif
}
#endif
static inline vf vf_keep_n(vf v, size_t n, vf other) {
#define E(i) vp_keep_n(v.p[i], vf__lanes_of(n, i), other.p[i])
    return VF__PARTS(E);
#undef E
}

#define VF__UNARY(name)                                                                            \
    static inline vf vf_##name(vf a) { return VF__PARTS(VF__E_##name); }
#define VF__E_sqrt(i)  VF__1(i, vp_sqrt)
#define VF__E_abs(i)   VF__1(i, vp_abs)
#define VF__E_round(i) VF__1(i, vp_round)
VF__UNARY(sqrt)
VF__UNARY(abs)
VF__UNARY(round)

#define VF__BINARY(name)                                                                           \
    static inline vf vf_##name(vf a, vf b) { return VF__PARTS(VF__E_##name); }
#define VF__E_add(i)      VF__2(i, vp_add)
#define VF__E_sub(i)      VF__2(i, vp_sub)
#define VF__E_mul(i)      VF__2(i, vp_mul)
#define VF__E_div(i)      VF__2(i, vp_div)
#define VF__E_max(i)      VF__2(i, vp_max)
#define VF__E_min(i)      VF__2(i, vp_min)
#define VF__E_copysign(i) VF__2(i, vp_copysign)
#define VF__E_scale2(i)   VF__2(i, vp_scale2)
VF__BINARY(add)
VF__BINARY(sub)
VF__BINARY(mul)
VF__BINARY(div)
VF__BINARY(max)
VF__BINARY(min)
VF__BINARY(copysign)
VF__BINARY(scale2)

#define VF__TERNARY(name)                                                                          \
    static inline vf vf_##name(vf a, vf b, vf c) { return VF__PARTS(VF__E_##name); }
#define VF__E_fma(i)  VF__3(i, vp_fma)
#define VF__E_fnma(i) VF__3(i, vp_fnma)
#define VF__E_dp2(i)  VF__3(i, vp_dp2)
VF__TERNARY(fma)
VF__TERNARY(fnma)
VF__TERNARY(dp2)

static inline vf vf_gt(vf a, vf b, vf c, vf d) {
#define E(i) VF__4(i, vp_gt)
    return VF__PARTS(E);
#undef E
}

// The halving order over 16 lanes: adds lanes l and l + 8, then sums l and l + 4, and so on.
static inline float vf_hsum(vf v) {
#if VF_PARTS == 2
    return vp_hsum(vp_add(v.p[0], v.p[1]));
#else
    return vp_hsum(vp_add(vp_add(v.p[0], v.p[2]), vp_add(v.p[1], v.p[3])));
#endif
}
static inline float vf_hmax(vf v) {
#if VF_PARTS == 2
    return vp_hmax(vp_max(v.p[0], v.p[1]));
#else
    return vp_hmax(vp_max(vp_max(v.p[0], v.p[2]), vp_max(v.p[1], v.p[3])));
#endif
}

// The vectors form a matrix, which consists of squares of VP_LANES by VP_LANES elements. Transposes
// each square in registers, and exchanges the squares on opposite sides of the diagonal. r has
// values in its first `rows` vectors, and zeros in the others. Only the first `columns` vectors of
// the result are valid.
static inline void vf_transpose_n(vf r[VF_LANES], size_t rows, size_t columns) {
    for (size_t i = 0; i < VF_PARTS; i++)
        for (size_t j = i; j < VF_PARTS; j++) {
            const int below = i * VP_LANES < rows && j * VP_LANES < columns;
            const int above = j * VP_LANES < rows && i * VP_LANES < columns;
            vp a[VP_LANES], b[VP_LANES];
            for (size_t l = 0; l < VP_LANES; l++) {
                a[l] = r[i * VP_LANES + l].p[j];
                b[l] = r[j * VP_LANES + l].p[i];
            }
            if (below) vp_transpose(a);
            if (i != j && above) vp_transpose(b);
            for (size_t l = 0; l < VP_LANES; l++) {
                if (i != j) r[i * VP_LANES + l].p[j] = b[l];
                r[j * VP_LANES + l].p[i] = a[l];
            }
        }
}

#endif
