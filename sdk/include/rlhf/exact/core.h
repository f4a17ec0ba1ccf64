// rlhf/exact/core.h: the arithmetic of rlhf/exact.h. It works on fixed-point numbers of 128 bits
// and rounds them to doubles. Include rlhf/exact.h instead.
//
// The code uses integers only, so that neither the compiler's options nor the CPU's floating-point
// unit can change a result.
#ifndef RLHF_EXACT_CORE_H
#define RLHF_EXACT_CORE_H

#include <rlhf/exact/tables.h>
#include <stdint.h>
#include <string.h>

__extension__ typedef unsigned __int128 rlhf_x_u128;
__extension__ typedef __int128 rlhf_x_i128;

#define RLHF_X_1     ((rlhf_x_u128)1 << 127) // 1 in numbers of 127 bits below the binary point
#define RLHF_X_POINT 117                     // bits below the point where up to 10 are above it

// The number m 2^e or -m 2^e. The exact value differs from this number by at most err 2^e.
struct rlhf_x {
    rlhf_x_u128 m, err;
    int64_t e, negative;
};

static inline uint64_t rlhf_x_bits(double x) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline double rlhf_x_double(uint64_t u) {
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

// 2^n for a normal result.
static inline double rlhf_x_two(int n) { return rlhf_x_double((uint64_t)(n + 1023) << 52); }

static inline rlhf_x_u128 rlhf_x_join(struct rlhf_x_pair p) {
    return (rlhf_x_u128)p.hi << 64 | p.lo;
}

// The upper half of a b.
static inline uint64_t rlhf_x_high(uint64_t a, uint64_t b) {
    return (uint64_t)((rlhf_x_u128)a * b >> 64);
}

static inline rlhf_x_u128 rlhf_x_mul(rlhf_x_u128 a, rlhf_x_u128 b) {
    const uint64_t ah = (uint64_t)(a >> 64), al = (uint64_t)a, bh = (uint64_t)(b >> 64),
                   bl = (uint64_t)b;
    const rlhf_x_u128 p = (rlhf_x_u128)ah * bl, q = (rlhf_x_u128)al * bh,
                      low = (rlhf_x_u128)rlhf_x_high(al, bl) + (uint64_t)p + (uint64_t)q;
    return (rlhf_x_u128)ah * bh + (p >> 64) + (q >> 64) + (low >> 64);
}

// The number of zero bits above the highest 1 bit of a; a is not 0.
static inline int rlhf_x_zeros(rlhf_x_u128 a) {
    const uint64_t high = (uint64_t)(a >> 64);
    return high ? __builtin_clzll(high) : 64 + __builtin_clzll((uint64_t)a);
}

static inline rlhf_x_u128 rlhf_x_shift_right(rlhf_x_u128 a, int n) { return n >= 128 ? 0 : a >> n; }

// Writes |x| as *m 2^(e - 63), where the highest bit of *m is set, and returns e. x is finite and
// not 0.
static inline int rlhf_x_split(double x, uint64_t *m) {
    const uint64_t u = rlhf_x_bits(x), f = u & 0x000fffffffffffff;
    const int exponent = (int)(u >> 52 & 0x7ff);
    if (exponent) {
        *m = f << 11 | 0x8000000000000000;
        return exponent - 1023;
    }
    const int n = __builtin_clzll(f);
    *m = f << n;
    return -1011 - n;
}

// Rounds v to the nearest number with a significand of `bits` bits (at most 53); a tie goes to the
// even number. The result may have any exponent of a double. Sets *sure to 0 if v's error is too
// large to decide between two numbers.
static inline double rlhf_x_round(struct rlhf_x v, int bits, int *sure) {
    const uint64_t sign = (uint64_t)(v.negative != 0) << 63;
    *sure = 1;
    if (v.m == 0) {
        *sure = v.err == 0;
        return rlhf_x_double(sign);
    }
    const int n = rlhf_x_zeros(v.m), top = (int)v.e + 127 - n; // the highest bit's exponent
    const rlhf_x_u128 m = v.m << n, err = v.err << n;
    int keep = top >= -1022 ? bits : bits + 1022 + top;
    if (top > 1023) return rlhf_x_double(sign | 0x7ff0000000000000);
    if (keep < 0) return rlhf_x_double(sign);
    const rlhf_x_u128 half = RLHF_X_1 >> keep, rest = keep ? m & (half + (half - 1)) : m;
    const rlhf_x_u128 away = rest > half ? rest - half : half - rest;
    uint64_t q = keep ? (uint64_t)(m >> 64) >> (64 - keep) : 0;
    *sure = v.err == 0 || away > err;
    if (rest > half || (rest == half && (q & 1))) q++;
    q <<= 53 - bits;
    return rlhf_x_double(sign | (((top >= -1022 ? (uint64_t)(top + 1022) : 0) << 52) + q));
}

// |x| with RLHF_X_POINT bits below the point; |x| is below 1024 and at least 2^-54, or 0.
static inline rlhf_x_u128 rlhf_x_fixed(double x) {
    uint64_t m;
    if (x == 0) return 0;
    const int shift = rlhf_x_split(x, &m) - 63 + RLHF_X_POINT;
    return shift >= 0 ? (rlhf_x_u128)m << shift : rlhf_x_shift_right(m, -shift);
}

// ---- exponential ----

// log 2 / 32 times k, with RLHF_X_POINT bits below the point.
static inline rlhf_x_i128 rlhf_x_steps_of(int64_t k) {
    const uint64_t a = (uint64_t)(k < 0 ? -k : k);
    const rlhf_x_u128 v =
        ((rlhf_x_u128)a * rlhf_x_step.hi << 49) + ((rlhf_x_u128)a * rlhf_x_step.lo >> 15);
    return k < 0 ? -(rlhf_x_i128)v : (rlhf_x_i128)v;
}

// Returns e^r - 1 for 0 <= r < log 2 / 32. r has RLHF_X_POINT bits below the point, the result 131.
static inline rlhf_x_u128 rlhf_x_exp_rest(rlhf_x_u128 r) {
    const rlhf_x_u128 x = r << 15; // 132 bits below the point
    const uint64_t h = (uint64_t)(x >> 64);
    uint64_t t = rlhf_x_factorial[8];
    for (int n = 7; n >= 0; n--)
        t = rlhf_x_factorial[n] + (rlhf_x_high(h, t) >> 4);
    rlhf_x_u128 u = (rlhf_x_u128)t << 49;
    u = RLHF_X_1 / 5040 + (rlhf_x_mul(x, u) >> 4);
    u = RLHF_X_1 / 720 + (rlhf_x_mul(x, u) >> 4);
    u = RLHF_X_1 / 120 + (rlhf_x_mul(x, u) >> 4);
    u = RLHF_X_1 / 24 + (rlhf_x_mul(x, u) >> 4);
    u = RLHF_X_1 / 6 + (rlhf_x_mul(x, u) >> 4);
    u = RLHF_X_1 / 2 + (rlhf_x_mul(x, u) >> 4);
    u = RLHF_X_1 + (rlhf_x_mul(x, u) >> 4);
    return rlhf_x_mul(x, u);
}

// Returns e^x. x and its error have RLHF_X_POINT bits below the point. The result is a power of 2
// times a number from 1 to 2 with 127 bits below the point.
static inline struct rlhf_x rlhf_x_exp_of(rlhf_x_i128 x, rlhf_x_u128 err) {
    int64_t k = (int64_t)((rlhf_x_i128)(int64_t)(x >> 64) * rlhf_x_steps >> 110);
    rlhf_x_i128 r = x - rlhf_x_steps_of(k);
    if (r < 0) r = x - rlhf_x_steps_of(--k);
    if (r >= (rlhf_x_i128)(rlhf_x_join(rlhf_x_step) >> 15)) r = x - rlhf_x_steps_of(++k);
    if (r < 0) r = 0; // by rounding: r is less than 2 units below
    const rlhf_x_u128 base = rlhf_x_join(rlhf_x_exp2[k & 31]);
    const rlhf_x_u128 m = base + (rlhf_x_mul(base, rlhf_x_exp_rest((rlhf_x_u128)r)) >> 3);
    const struct rlhf_x out = {m, (err + 4) << 11, (k >> 5) - 127, 0};
    return out;
}

// ---- logarithm ----

// Returns log(1 + z) / z with 127 bits below the point, for |z| < 2^-7. The argument is |z| with
// 134 bits below the point.
static inline rlhf_x_u128 rlhf_x_log_rest(rlhf_x_u128 z, int negative) {
    static const rlhf_x_u128 part[8] = {RLHF_X_1,     RLHF_X_1 / 2, RLHF_X_1 / 3, RLHF_X_1 / 4,
                                        RLHF_X_1 / 5, RLHF_X_1 / 6, RLHF_X_1 / 7, RLHF_X_1 / 8};
    const uint64_t one = 0x8000000000000000, h = (uint64_t)(z >> 64);
    static const uint64_t small[9] = {one / 9,  one / 10, one / 11, one / 12, one / 13,
                                      one / 14, one / 15, one / 16, one / 17};
    uint64_t s = small[8];
    for (int n = 7; n >= 0; n--) {
        const uint64_t p = rlhf_x_high(h, s) >> 6;
        s = negative ? small[n] + p : small[n] - p;
    }
    rlhf_x_u128 t = (rlhf_x_u128)s << 64;
    for (int n = 7; n >= 0; n--) {
        const rlhf_x_u128 p = rlhf_x_mul(z, t) >> 6;
        t = negative ? part[n] + p : part[n] - p;
    }
    return t;
}

// Returns log(m 2^(e - 127)). The highest bit of m is 1, and its lowest ten bits are 0.
static inline struct rlhf_x rlhf_x_log_of(rlhf_x_u128 m, int e) {
    const int i = (int)(m >> 120) & 127, upper = i >= 53;
    const uint16_t c = rlhf_x_inverse[i];
    const rlhf_x_u128 p = (m >> 10) * c, one = (rlhf_x_u128)1 << (125 + upper);
    const int below = p < one;
    rlhf_x_u128 z = (below ? one - p : p - one) << (9 - upper);
    struct rlhf_x out = {0, 64, 0, 0};
    int s = 0;
    e += upper;
    if (z) {
        const rlhf_x_u128 t = rlhf_x_log_rest(z, below);
        s = rlhf_x_zeros(z);
        z = rlhf_x_mul(z << s, t); // 133 + s bits below the point
    }
    if (e == 0 && c == 256) {
        out.m = z, out.e = -133 - s, out.negative = below;
        if (!z) out.err = 0;
        return out;
    }
    const rlhf_x_i128 near = (rlhf_x_i128)rlhf_x_shift_right(z, 16 + s),
                      table = (rlhf_x_i128)rlhf_x_join(rlhf_x_log[i]);
    const rlhf_x_u128 two = rlhf_x_join(rlhf_x_log2_pair), a = (rlhf_x_u128)(e < 0 ? -e : e);
    const rlhf_x_i128 whole =
        (rlhf_x_i128)((two >> 64) * a << 54) + (rlhf_x_i128)((rlhf_x_u128)(uint64_t)two * a >> 10);
    const rlhf_x_i128 sum =
        (e < 0 ? -whole : whole) + (upper ? -table : table) + (below ? -near : near);
    out.m = (rlhf_x_u128)(sum < 0 ? -sum : sum);
    out.e = -RLHF_X_POINT, out.negative = sum < 0;
    return out;
}

// ---- sine and cosine ----

// Computes |x| * 2 / pi modulo 4. Returns the integer part, and stores n words of the fraction in
// `fraction`, the highest first. |x| is at least 2^-27, and n is from 4 to 8. The first 64 n - 54
// bits of the fraction are exact.
static inline int rlhf_x_quarters(double x, int n, uint64_t *fraction) {
    uint64_t m, w[10] = {0}, carry = 0;
    const int e = rlhf_x_split(x, &m) - 52, first = e > 2 ? e - 2 : 0, word = first / 64,
              bit = first % 64;
    m >>= 11;
    for (int i = n - 1; i >= 0; i--) { // w[0] to w[n]: m times n words from bit `first` onward
        const uint64_t a = rlhf_x_two_over_pi[word + i], b = rlhf_x_two_over_pi[word + i + 1];
        const rlhf_x_u128 p = (rlhf_x_u128)(bit ? a << bit | b >> (64 - bit) : a) * m + carry;
        w[i + 1] = (uint64_t)p;
        carry = (uint64_t)(p >> 64);
    }
    w[0] = carry;
    // w has 64 n + first - e bits below the point, which is 64 n - 2 or more. w[n + 1] is 0.
    const int up = 64 + e - first; // 1 is bit `up` of the upper two words w[0], w[1]
    int whole = 0;
    if (up > 0) { // drop the upper bits, so that the fraction begins at the top
        whole = (int)((((rlhf_x_u128)w[0] << 64 | w[1]) >> (128 - up)) & 3);
        const int skip = up / 64, left = up % 64;
        for (int i = 0; i < n; i++) {
            const uint64_t a = i + skip < 10 ? w[i + skip] : 0,
                           b = i + skip + 1 < 10 ? w[i + skip + 1] : 0;
            fraction[i] = left ? a << left | b >> (64 - left) : a;
        }
        return whole;
    }
    for (int i = 0; i < n; i++) { // up is above -64, as x is not small
        const uint64_t a = i ? w[i - 1] : 0, b = w[i];
        fraction[i] = up ? a << (64 + up) | b >> -up : b;
    }
    return 0;
}

// Returns the sum of (-1)^i w^i / (first + 2i)! with 127 bits below the point. `first` is 0 or 1. w
// is below 2^-10 and has 137 bits below the point.
static inline rlhf_x_u128 rlhf_x_wave(rlhf_x_u128 w, int first) {
    static const rlhf_x_u128 odd[8] = {
        RLHF_X_1,          RLHF_X_1 / 6,        RLHF_X_1 / 120,        RLHF_X_1 / 5040,
        RLHF_X_1 / 362880, RLHF_X_1 / 39916800, RLHF_X_1 / 6227020800, RLHF_X_1 / 1307674368000};
    static const rlhf_x_u128 even[9] = {RLHF_X_1,
                                        RLHF_X_1 / 2,
                                        RLHF_X_1 / 24,
                                        RLHF_X_1 / 720,
                                        RLHF_X_1 / 40320,
                                        RLHF_X_1 / 3628800,
                                        RLHF_X_1 / 479001600,
                                        RLHF_X_1 / 87178291200,
                                        RLHF_X_1 / 20922789888000};
    rlhf_x_u128 u = first ? odd[7] : even[8];
    for (int n = first ? 6 : 7; n >= 0; n--)
        u = (first ? odd[n] : even[n]) - (rlhf_x_mul(w, u) >> 9);
    return u;
}

// Returns the sine of f pi / 2 or, with `want_cos`, the cosine. f is from 0 to 1/2 and has 128 bits
// below the point.
static inline struct rlhf_x rlhf_x_sin_of(rlhf_x_u128 f, int want_cos) {
    const int j = (int)(f >> 122);
    const rlhf_x_u128 g = f - ((rlhf_x_u128)j << 122);                          // below 1/64
    const rlhf_x_u128 b = rlhf_x_mul(g << 6, rlhf_x_join(rlhf_x_half_pi)) >> 1; // 132 bits
    const rlhf_x_u128 w = rlhf_x_mul(b, b) << 1;                                // 137 bits
    struct rlhf_x out = {0, 1 << 10, -127, 0};
    if (j == 0 && !want_cos) { // relatively exact
        const int s = g ? rlhf_x_zeros(g) : 0;
        const rlhf_x_u128 angle = rlhf_x_mul(g << s, rlhf_x_join(rlhf_x_half_pi));
        out.m = rlhf_x_mul(angle, rlhf_x_wave(w, 1)); // g: 128 + s, half_pi: 127
        out.e = -(128 + s + 127 - 128 + 127 - 128);
        out.err = (rlhf_x_u128)4 << (s < 120 ? s : 120);
        return out;
    }
    const rlhf_x_u128 sin_b = rlhf_x_mul(b, rlhf_x_wave(w, 1)) >> 3; // 128 bits
    const rlhf_x_u128 cos_b = rlhf_x_wave(w, 0);
    const rlhf_x_u128 s = rlhf_x_join(rlhf_x_sin[j]), c = rlhf_x_join(rlhf_x_cos[j]);
    if (want_cos)
        out.m = (rlhf_x_mul(c, cos_b) << 1) - rlhf_x_mul(s, sin_b);
    else
        out.m = (rlhf_x_mul(s, cos_b) << 1) + rlhf_x_mul(c, sin_b);
    return out;
}

#endif
