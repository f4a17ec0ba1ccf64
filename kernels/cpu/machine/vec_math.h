// vec_math.h: exp, tanh, erfc and erf on the lanes of vec.h. Include vec.h instead. The
// polynomials are minimax fits made for this file. Their relative errors before rounding (exp 4e-9,
// tanh 5e-9, erfc 6e-8) are smaller than the error of f32 rounding.
#ifndef RLHF_KERNELS_CPU_MACHINE_VEC_MATH_H
#define RLHF_KERNELS_CPU_MACHINE_VEC_MATH_H

#define VF__EXP_LO (-86.5f)
#define VF__EXP_HI 88.72283f // the largest f32 whose e^x is finite

// Range handling of vf_exp. vf__exp_clamp limits x, so that p 2^n can be computed. vf__exp_scale
// corrects the results for x beyond the limits. With lane masks, one scale instruction is enough:
// it overflows to Inf by itself, and its mask sets the lanes below VF__EXP_LO to 0. (For x = -Inf,
// p is NaN, but the mask makes that lane 0 too.)
#if VP_LANES == 16
static inline vf vf__exp_clamp(vf x) { return vf_min(vf_set1(89.0f), x); }
static inline vf vf__exp_scale(vf p, vf n, vf x) {
    __mmask16 in = _mm512_cmp_ps_mask(x, vf_set1(VF__EXP_LO), _CMP_NLT_UQ);
    return _mm512_maskz_scalef_ps(in, p, n);
}
#else
static inline vf vf__exp_clamp(vf x) {
    return vf_max(vf_set1(VF__EXP_LO), vf_min(vf_set1(VF__EXP_HI), x));
}
static inline vf vf__exp_scale(vf p, vf n, vf x) {
    vf y = vf_gt(vf_set1(VF__EXP_LO), x, vf_zero(), vf_scale2(p, n));
    return vf_gt(x, vf_set1(VF__EXP_HI), vf_set1(__builtin_inff()), y);
}
#endif

// e^x, relative error about 1e-7. Below x = -86.5 the result is 0, so there are no denormals; above
// 88.72 it is +Inf. -Inf gives 0, and NaN gives NaN. x = n ln 2 + r, |r| <= ln 2 / 2. ln 2 is split
// into two parts, so that r is exact for |n| < 2^11.
static inline vf vf_exp(vf x) {
    vf c = vf__exp_clamp(x);
    vf n = vf_round(vf_mul(c, vf_set1(1.44269504f)));
    vf r = vf_fnma(n, vf_set1(0.693359375f), c);
    r = vf_fma(n, vf_set1(2.12194440e-4f), r);
    vf p = vf_set1(1.381314450e-3f);
    p = vf_fma(p, r, vf_set1(8.369419118e-3f));
    p = vf_fma(p, r, vf_set1(4.166845680e-2f));
    p = vf_fma(p, r, vf_set1(1.666651479e-1f));
    p = vf_fma(p, r, vf_set1(4.999999305e-1f));
    p = vf_fma(vf_mul(p, r), r, vf_add(r, vf_set1(1.0f)));
    return vf__exp_scale(p, n, x);
}

// tanh x, relative error about 2e-7 everywhere.
static inline vf vf_tanh(vf x) {
    vf a = vf_abs(x), s = vf_mul(x, x);
    vf p = vf_set1(-5.660777501e-3f);
    p = vf_fma(p, s, vf_set1(2.060199619e-2f));
    p = vf_fma(p, s, vf_set1(-5.372922601e-2f));
    p = vf_fma(p, s, vf_set1(1.333132890e-1f));
    p = vf_fma(p, s, vf_set1(-3.333327831e-1f));
    vf small = vf_fma(vf_mul(p, s), a, a);
    vf e = vf_exp(vf_add(a, a));
    vf big = vf_sub(vf_set1(1.0f), vf_div(vf_set1(2.0f), vf_add(e, vf_set1(1.0f))));
    return vf_copysign(vf_gt(a, vf_set1(0.6f), big, small), x);
}

// Returns erfc z = e t Q(t) for z >= 0, where e must be vf_exp(-z * z) and t = 1 / (1 + 0.4 z). Q
// contributes less than 2e-7 to the relative error, and the rounding of z^2 about 1e-7 z^2.
static inline vf vf_erfc_pos(vf z, vf e) {
    vf t = vf_div(vf_set1(1.0f), vf_fma(z, vf_set1(0.4f), vf_set1(1.0f)));
    vf p = vf_set1(4.125342583e-2f);
    p = vf_fma(p, t, vf_set1(-1.403210818e-1f));
    p = vf_fma(p, t, vf_set1(8.399102061e-2f));
    p = vf_fma(p, t, vf_set1(8.796017516e-2f));
    p = vf_fma(p, t, vf_set1(7.975928276e-2f));
    p = vf_fma(p, t, vf_set1(1.933920604e-1f));
    p = vf_fma(p, t, vf_set1(2.018878720e-1f));
    p = vf_fma(p, t, vf_set1(2.264430737e-1f));
    p = vf_fma(p, t, vf_set1(2.256342333e-1f));
    return vf_mul(vf_mul(p, t), e);
}

// erf x, absolute error about 4e-7.
static inline vf vf_erf(vf x) {
    vf z = vf_abs(x);
    vf e = vf_exp(vf_sub(vf_zero(), vf_mul(z, z)));
    return vf_copysign(vf_max(vf_zero(), vf_sub(vf_set1(1.0f), vf_erfc_pos(z, e))), x);
}

#endif
