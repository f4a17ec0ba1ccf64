// rlhf/exact.h: exp, log and others, correctly rounded.
//
// Plugin contract 1.0, as source code, frozen: it only grows.
//
// Only these functions are part of the contract: rlhf_exp, rlhf_expm1, rlhf_log, rlhf_log1p,
// rlhf_log_f32, rlhf_sin, rlhf_cos and rlhf_pow. Everything else here may change in any version:
// names that begin with rlhf_x, RLHF_X_ or rlhf_wide, and the headers in rlhf/exact/.
//
// Each function returns the double (rlhf_log_f32: the float) that is nearest to the exact value.
// Only one number is the nearest, so the result is the same with every C library, compiler and CPU.
// Results of libm, in contrast, differ in the last bit between versions and CPUs. Use the functions
// of this header wherever a result can reach weights, samples, rewards or metrics.
//
// rlhf_exp, rlhf_log and rlhf_log_f32 first compute with doubles, and bound the error. If this
// bound leaves more than one possible result, they compute again with integers, to about 110 bits.
// The other functions compute with integers from the start. If the exact value is so close to the
// midpoint of two doubles that 110 bits do not decide the rounding, a function computes 320 bits
// (Ziv, "Fast evaluation of elementary mathematical functions with correctly rounded last bit",
// 1991). Special values follow Annex F of the C standard. The functions always round to nearest and
// do not set errno. A call takes 10 to 120 ns; rlhf_pow takes 200 ns.
#ifndef RLHF_EXACT_H
#define RLHF_EXACT_H

#include <math.h>
#include <rlhf/exact/core.h>
#include <rlhf/exact/wide.h>

// ---- exponential ----

RLHF_X_RARE double rlhf_x_exp_wide(double x, int minus_one) {
    int64_t k;
    int sure;
    struct rlhf_wide a = rlhf_wide_double(x, 0);
    if (x < 0) a = rlhf_wide_add(rlhf_wide_of(0), a, 1);
    a = rlhf_wide_exp_of(a, &k);
    if (minus_one && k < 62) {
        a = rlhf_wide_add(rlhf_wide_shift(a, (int)k), rlhf_wide_of(1), 1);
        k = 0;
    }
    return rlhf_x_round(rlhf_wide_result(a, k), 53, &sure);
}

// A first try with doubles, for |x| < 700. Its result is accurate to 57 bits, which is enough for
// 15 of 16 arguments.
static inline double rlhf_x_exp_quick(double x, int *sure) {
    const int k = (int)(x * 46.16624130844683 + (x < 0 ? -0.5 : 0.5));
    const struct rlhf_x_pair t = rlhf_x_exp2[k & 31];
    const double high = (double)(int64_t)(t.hi >> 11) * rlhf_x_two(-52),
                 low = (double)(int64_t)((t.hi & 0x7ff) << 42 | t.lo >> 22) * rlhf_x_two(-105);
    // log 2 / 32 in two parts; the first has 38 bits, so that its product with k is exact
    const double r = x - k * 0.021660849392446835, rest = k * -5.145609244655338e-14;
    const double s = r + rest;
    const double q =
        s * s *
        (1.0 / 2 +
         s * (1.0 / 6 + s * (1.0 / 24 + s * (1.0 / 120 + s * (1.0 / 720 + s * (1.0 / 5040))))));
    const double c = low + high * (r + (rest + q)), err = rlhf_x_two(-57);
    const double a = high + (c - err), b = high + (c + err);
    *sure = a == b;
    return a * rlhf_x_two(k >> 5);
}

// e^x. [any]
static inline double rlhf_exp(double x) {
    int sure;
#ifndef __FAST_MATH__
    if (fabs(x) < 700) {
        const double y = rlhf_x_exp_quick(x, &sure);
        if (sure) return y;
    }
#endif
    if (!(x < 710)) return x + (x < INFINITY ? INFINITY : 0); // overflow, infinity, NaN
    if (x < -746) return 0;
    if (fabs(x) < rlhf_x_two(-54)) return 1;
    const rlhf_x_i128 a = (rlhf_x_i128)rlhf_x_fixed(x);
    const double y = rlhf_x_round(rlhf_x_exp_of(x < 0 ? -a : a, 0), 53, &sure);
    return sure ? y : rlhf_x_exp_wide(x, 0);
}

// e^x - 1, with all bits for small x. [any]
static inline double rlhf_expm1(double x) {
    int sure;
    if (!(x < 710)) return x + (x < INFINITY ? INFINITY : 0);
    if (x < -60) return x < -INFINITY ? x : -1;
    if (fabs(x) < rlhf_x_two(-54)) return x;
    const rlhf_x_i128 a = (rlhf_x_i128)rlhf_x_fixed(x);
    struct rlhf_x v = rlhf_x_exp_of(x < 0 ? -a : a, 0);
    if (v.e <= -127) { // below 2: 127 bits below the point
        v.m = rlhf_x_shift_right(v.m, (int)(-127 - v.e));
        v.negative = v.m < RLHF_X_1;
        v.m = v.negative ? RLHF_X_1 - v.m : v.m - RLHF_X_1;
        v.e = -127;
    } else if (v.e < 0) {
        v.m -= (rlhf_x_u128)1 << -v.e;
    }
    v.err++; // also where 1 is below the last bit
    const double y = rlhf_x_round(v, 53, &sure);
    return sure ? y : rlhf_x_exp_wide(x, 1);
}

// ---- logarithm ----

RLHF_X_RARE double rlhf_x_log_wide(double x, int plus_one, int bits) {
    int sure, e;
    uint64_t m;
    struct rlhf_wide a;
    e = rlhf_x_split(x, &m);
    if (plus_one && e < 200) { // beyond 2^200, 1 has no influence
        if (e < 0) e = 0;
        a = rlhf_wide_double(x, e);
        if (x < 0) a = rlhf_wide_add(rlhf_wide_of(0), a, 1);
        a = rlhf_wide_add(a, rlhf_wide_shift(rlhf_wide_of(1), -e), 0);
        while (a.w[5] >= 2)
            a = rlhf_wide_shift(a, -1), e++;
        while (a.w[5] == 0)
            a = rlhf_wide_shift(a, 1), e--;
    } else {
        a = rlhf_wide_double(x, e);
    }
    return rlhf_x_round(rlhf_wide_result(rlhf_wide_log(a, e), 0), bits, &sure);
}

// log x rounded to `bits` bits.
static inline double rlhf_x_log_bits(double x, int bits) {
    int sure;
    uint64_t m;
    if (!(x > 0) || x == INFINITY) return x == 0 ? -INFINITY : x > 0 ? x : x < 0 ? NAN : x + x;
    const int e = rlhf_x_split(x, &m);
    const double y = rlhf_x_round(rlhf_x_log_of((rlhf_x_u128)m << 64, e), bits, &sure);
    return sure ? y : rlhf_x_log_wide(x, 0, bits);
}

// A first try with doubles, for a normal x > 0. Its result is accurate to about 63 bits, which is
// enough for 99 of 100 arguments, or for 19 of 20 near 1. With y = x / 2^e and c from the table,
// log x is e log 2 - log c + log(1 + z), where z = c y - 1 and |z| < 2^-7.
static inline double rlhf_x_log_quick(double x, int *sure) {
    const uint64_t u = rlhf_x_bits(x);
    const int i = (int)(u >> 45) & 127, upper = i >= 53, e = (int)(u >> 52) - 1023 + upper;
    const double y = rlhf_x_double((u & 0x000fffffffffffff) | (uint64_t)(1023 - upper) << 52);
    const double y_high = rlhf_x_double(rlhf_x_bits(y) & ~(uint64_t)0x7ffffff);
    // The sums of high parts are exact: all are multiples of 2^-42, and below 2^10.
    const double c = rlhf_x_inverse[i] * rlhf_x_two(-8), z_high = y_high * c - 1,
                 z_low = (y - y_high) * c, z = z_high + z_low, zz = z * z;
    const double p =
        zz *
        (z * (1.0 / 3 -
              z * (1.0 / 4 -
                   z * (1.0 / 5 - z * (1.0 / 6 - z * (1.0 / 7 - z * (1.0 / 8 - z * (1.0 / 9))))))) -
         1.0 / 2); // log(1 + z) - z
    double high = z, low = p, err = zz * rlhf_x_two(-50);
    if (e || rlhf_x_inverse[i] != 256) {
        const struct rlhf_x_pair t = rlhf_x_log[i];
        const double t_high = (double)(int64_t)(t.hi >> 11) * rlhf_x_two(-42),
                     t_low = (double)(int64_t)((t.hi & 0x7ff) << 42 | t.lo >> 22) * rlhf_x_two(-95);
        high = e * 0.6931471805598903 + (upper ? -t_high : t_high) + z_high;
        low = e * 5.497923018708371e-14 + (upper ? -t_low : t_low) + z_low + p;
        err += rlhf_x_two(-66);
    }
    const double a = high + (low - err), b = high + (low + err);
    *sure = a == b;
    return a;
}

// The natural logarithm. [any]
static inline double rlhf_log(double x) {
#ifndef __FAST_MATH__
    if (x >= rlhf_x_two(-1022) && x < INFINITY) {
        int sure;
        const double y = rlhf_x_log_quick(x, &sure);
        if (sure) return y;
    }
#endif
    return rlhf_x_log_bits(x, 53);
}

// log(1 + x), with all bits for small x. [any]
static inline double rlhf_log1p(double x) {
    int sure;
    uint64_t m;
    if (!(x > -1) || x == INFINITY) return x == -1 ? -INFINITY : x > -1 ? x : x < -1 ? NAN : x + x;
    if (fabs(x) < rlhf_x_two(-54)) return x;
    const int e = rlhf_x_split(x, &m);
    if (e >= 52) return rlhf_x_log_wide(x, 1, 53);
    // 1 + x with 107 bits below the point, all of them exact
    rlhf_x_u128 a = (rlhf_x_u128)(m >> 11);
    a = e + 55 >= 0 ? a << (e + 55) : a >> -(e + 55);
    a = x < 0 ? ((rlhf_x_u128)1 << 107) - a : ((rlhf_x_u128)1 << 107) + a;
    const int n = rlhf_x_zeros(a);
    if (n < 10) return rlhf_x_log_wide(x, 1, 53);
    const double y = rlhf_x_round(rlhf_x_log_of(a << n, 20 - n), 53, &sure);
    return sure ? y : rlhf_x_log_wide(x, 1, 53);
}

// The natural logarithm of a float, correctly rounded to a float. [any]
static inline float rlhf_log_f32(float x) {
    uint64_t u = rlhf_x_bits((double)x);
    if (!(x > 0) || x == INFINITY) return (float)rlhf_x_log_bits((double)x, 24);
    // A first try with doubles. It is accurate to at least 45 bits; the result needs 24.
    const int i = (int)(u >> 45) & 127, upper = i >= 53, e = (int)(u >> 52) - 1023 + upper;
    u = (u & 0x000fffffffffffff) | (uint64_t)(1023 - upper) << 52;
    const double z = rlhf_x_double(u) * (rlhf_x_inverse[i] * rlhf_x_two(-8)) - 1; // exact
    const double table = (double)(int64_t)rlhf_x_log[i].hi * rlhf_x_two(-53);
    const double p =
        z - z * z * (0.5 - z * (1.0 / 3 - z * (0.25 - z * (0.2 - z * (1.0 / 6 - z * (1.0 / 7))))));
    const double y = e * 0.69314718055994530942 + (upper ? -table : table) + p;
    const double err = fabs(y) * rlhf_x_two(-44);
    const float low = (float)(y - err), high = (float)(y + err);
    return low == high ? low : (float)rlhf_x_log_bits((double)x, 24);
}

// ---- sine and cosine ----

RLHF_X_RARE double rlhf_x_sin_wide(double x, int quarters) {
    uint64_t words[8];
    int sure;
    const int q = rlhf_x_quarters(x, 8, words) + quarters;
    struct rlhf_wide f = rlhf_wide_from(words);
    const int beyond = f.w[4] >> 63 != 0;
    if (beyond) f = rlhf_wide_add(rlhf_wide_of(1), f, 1);
    struct rlhf_x v = rlhf_wide_result(rlhf_wide_sin(f, (q & 1) ^ beyond), 0);
    v.negative = (q >> 1 & 1) ^ (x < 0 && !quarters);
    return rlhf_x_round(v, 53, &sure);
}

// Returns sin(|x| + quarters pi / 2) or, if `quarters` is 0, sin x.
static inline double rlhf_x_wave_of(double x, int quarters) {
    uint64_t words[4];
    int sure;
    const int q = rlhf_x_quarters(x, 4, words) + quarters;
    rlhf_x_u128 f = (rlhf_x_u128)words[0] << 64 | words[1];
    const int beyond = words[0] >> 63 != 0;
    if (beyond) f = -f; // 1 - f
    struct rlhf_x v = rlhf_x_sin_of(f, (q & 1) ^ beyond);
    v.negative = (q >> 1 & 1) ^ (x < 0 && !quarters);
    const double y = rlhf_x_round(v, 53, &sure);
    return sure ? y : rlhf_x_sin_wide(x, quarters);
}

// The sine of x, for every double. [any]
static inline double rlhf_sin(double x) {
    if (!(fabs(x) < INFINITY)) return x - x;
    return fabs(x) < rlhf_x_two(-27) ? x : rlhf_x_wave_of(x, 0);
}

// The cosine of x, for every double. [any]
static inline double rlhf_cos(double x) {
    if (!(fabs(x) < INFINITY)) return x - x;
    return fabs(x) < rlhf_x_two(-27) ? 1 : rlhf_x_wave_of(x, 1);
}

// ---- power ----

// Sets *a to *a times b, for normalized numbers m 2^(e - 127). Returns 1 if the product is exact.
static inline int rlhf_x_times(struct rlhf_x *a, struct rlhf_x b) {
    const rlhf_x_u128 high = rlhf_x_mul(a->m, b.m), low = a->m * b.m;
    const int up = !(high >> 127);
    a->m = up ? high << 1 | low >> 127 : high;
    a->e += b.e + !up;
    return !(up ? low << 1 : low);
}

// Returns m 2^(e - 63) to the power n, for 1 <= n < 2^32. If the result is exact, its member `err`
// is 0.
static inline struct rlhf_x rlhf_x_whole_power(uint64_t m, int e, uint64_t n) {
    struct rlhf_x r = {RLHF_X_1, 0, 0, 0}, b = {(rlhf_x_u128)m << 64, 0, e, 0};
    int exact = 1, square_exact = 1;
    for (uint64_t left = n; left; left >>= 1) {
        if (left & 1) exact &= rlhf_x_times(&r, b) && square_exact;
        if (left > 1) square_exact &= rlhf_x_times(&b, b);
    }
    r.err = exact ? 0 : (rlhf_x_u128)n * 8;
    r.e -= 127;
    return r;
}

RLHF_X_RARE double rlhf_x_pow_wide(double x, double y) {
    uint64_t m, my;
    int64_t k;
    int sure;
    const int e = rlhf_x_split(x, &m), ey = rlhf_x_split(y, &my);
    struct rlhf_wide t = rlhf_wide_log(rlhf_wide_double(x, e), e);
    const int negative = rlhf_wide_negative(t) ^ (y < 0);
    // |log x| times y's 53 bits is below 2^63
    t = rlhf_wide_mul(rlhf_wide_abs(t), rlhf_wide_of(my >> 11));
    t = rlhf_wide_shift(t, ey - 52);
    if (negative) t = rlhf_wide_add(rlhf_wide_of(0), t, 1);
    t = rlhf_wide_exp_of(t, &k);
    return rlhf_x_round(rlhf_wide_result(t, k), 53, &sure);
}

static inline int rlhf_x_is_whole(double x) {
    return fabs(x) >= rlhf_x_two(53) || x == (double)(int64_t)x;
}

// x^y for finite x > 0, x != 1, and finite y != 0.
static inline double rlhf_x_pow_positive(double x, double y) {
    uint64_t m, my;
    int sure;
    int e = rlhf_x_split(x, &m);
    double z = y;
    // If z is not an integer and x is a square, x^z is root^(2 z), which may be an integer power
    // and exact. So continue with the root.
    while (!rlhf_x_is_whole(z)) {
        const double v = (double)(m >> 11) * ((e & 1) ? rlhf_x_two(-51) : rlhf_x_two(-52)),
                     root = sqrt(v);
        if ((rlhf_x_bits(root) & 0x3ffffff) || root * root != v) break;
        e = (e - (e & 1)) / 2 + rlhf_x_split(root, &m);
        z *= 2;
    }
    struct rlhf_x v = {RLHF_X_1, 0, 0, 0};
    if (fabs(z) < rlhf_x_two(32) && rlhf_x_is_whole(z) && (z > 0 || m == 0x8000000000000000)) {
        if (m == 0x8000000000000000)
            v.e = (int64_t)z * e - 127;
        else
            v = rlhf_x_whole_power(m, e, (uint64_t)z);
        if (v.e > 4000 || v.e < -4000) return v.e > 0 ? INFINITY : 0;
        const double out = rlhf_x_round(v, 53, &sure);
        return sure ? out : rlhf_x_pow_wide(x, y);
    }
    e = rlhf_x_split(x, &m);
    v = rlhf_x_log_of((rlhf_x_u128)m << 64, e);
    const int ey = rlhf_x_split(y, &my), n = rlhf_x_zeros(v.m),
              negative = (int)v.negative ^ (y < 0);
    v.m = rlhf_x_mul(v.m << n, (rlhf_x_u128)my << 64);
    v.err = (v.err << n) + 1;
    const int top = (int)v.e - n + ey + 1, shift = top + RLHF_X_POINT; // |y log x| = m 2^top
    if (top + 128 > 10 + rlhf_x_zeros(v.m)) return negative ? 0 : INFINITY;
    const rlhf_x_u128 t = rlhf_x_shift_right(v.m, -shift); // shift is negative
    v = rlhf_x_exp_of(negative ? -(rlhf_x_i128)t : (rlhf_x_i128)t,
                      rlhf_x_shift_right(v.err, -shift) + 2);
    if (v.e + 127 > 1030 || v.e + 127 < -1080) return negative ? 0 : INFINITY;
    const double out = rlhf_x_round(v, 53, &sure);
    return sure ? out : rlhf_x_pow_wide(x, y);
}

// x^y for special values: x is 0, or x or y is infinite or NaN. The caller handles x = 1 and y = 0.
static inline double rlhf_x_pow_special(double x, double y, int odd) {
    const double size = fabs(x);
    if (x != x || y != y) return x + y;
    if (size == 1) return 1; // -1 to an infinite power
    const double out = (size > 1) == (y > 0) ? INFINITY : 0;
    return odd && rlhf_x_bits(x) >> 63 ? -out : out;
}

// x to the power y. [any]
static inline double rlhf_pow(double x, double y) {
    const double size = fabs(x);
    if (y == 0 || x == 1) return 1;
    const int whole = y - y == 0 && rlhf_x_is_whole(y);
    const int odd = whole && fabs(y) < rlhf_x_two(53) && ((int64_t)y & 1);
    if (!(x - x == 0) || !(y - y == 0) || x == 0) return rlhf_x_pow_special(x, y, odd);
    if (x < 0 && !whole) return NAN;
    const double out = size == 1 ? 1 : rlhf_x_pow_positive(size, y);
    return x < 0 && odd ? -out : out;
}

#endif
