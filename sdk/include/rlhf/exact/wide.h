// rlhf/exact/wide.h: the functions of rlhf/exact.h with 320 bits below the point. They compute the
// few results that are so close to the midpoint of two doubles that the 128 bits of
// rlhf/exact/core.h cannot decide the rounding. They are slow, and their formulas differ from those
// of core.h. Include rlhf/exact.h instead.
#ifndef RLHF_EXACT_WIDE_H
#define RLHF_EXACT_WIDE_H

#include <rlhf/exact/core.h>

#define RLHF_X_RARE static __attribute__((noinline, cold, unused))

// Two's complement: w[5] is the integer part, and w[4] to w[0] are the fraction.
struct rlhf_wide {
    uint64_t w[6];
};

RLHF_X_RARE struct rlhf_wide rlhf_wide_of(uint64_t whole) {
    const struct rlhf_wide out = {{0, 0, 0, 0, 0, whole}};
    return out;
}

// Makes a fraction from five words, the highest first.
RLHF_X_RARE struct rlhf_wide rlhf_wide_from(const uint64_t *words) {
    const struct rlhf_wide out = {{words[4], words[3], words[2], words[1], words[0], 0}};
    return out;
}

// a + b, or a - b.
RLHF_X_RARE struct rlhf_wide rlhf_wide_add(struct rlhf_wide a, struct rlhf_wide b, int minus) {
    uint64_t carry = minus != 0;
    for (int i = 0; i < 6; i++) {
        const rlhf_x_u128 s = (rlhf_x_u128)a.w[i] + (minus ? ~b.w[i] : b.w[i]) + carry;
        a.w[i] = (uint64_t)s;
        carry = (uint64_t)(s >> 64);
    }
    return a;
}

static inline int rlhf_wide_negative(struct rlhf_wide a) { return (int)(a.w[5] >> 63); }

RLHF_X_RARE struct rlhf_wide rlhf_wide_abs(struct rlhf_wide a) {
    return rlhf_wide_negative(a) ? rlhf_wide_add(rlhf_wide_of(0), a, 1) : a;
}

// a b for numbers that are not negative, rounded down.
RLHF_X_RARE struct rlhf_wide rlhf_wide_mul(struct rlhf_wide a, struct rlhf_wide b) {
    uint64_t p[12] = {0};
    struct rlhf_wide out;
    for (int i = 0; i < 6; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < 6; j++) {
            const rlhf_x_u128 s = (rlhf_x_u128)a.w[i] * b.w[j] + p[i + j] + carry;
            p[i + j] = (uint64_t)s;
            carry = (uint64_t)(s >> 64);
        }
        p[i + 6] = carry;
    }
    memcpy(out.w, p + 5, sizeof out.w);
    return out;
}

RLHF_X_RARE struct rlhf_wide rlhf_wide_divide(struct rlhf_wide a, uint64_t n) {
    uint64_t left = 0;
    for (int i = 5; i >= 0; i--) {
        const rlhf_x_u128 s = (rlhf_x_u128)left << 64 | a.w[i];
        a.w[i] = (uint64_t)(s / n);
        left = (uint64_t)(s % n);
    }
    return a;
}

// Returns `a` times 2^n, for a >= 0; bits that do not fit are dropped.
RLHF_X_RARE struct rlhf_wide rlhf_wide_shift(struct rlhf_wide a, int n) {
    struct rlhf_wide out;
    const int words = n >= 0 ? n / 64 : -((63 - n) / 64), bits = n - 64 * words;
    for (int i = 0; i < 6; i++) {
        const int k = i - words;
        const uint64_t high = k >= 0 && k < 6 ? a.w[k] : 0, low = k >= 1 && k <= 6 ? a.w[k - 1] : 0;
        out.w[i] = bits ? high << bits | low >> (64 - bits) : high;
    }
    return out;
}

// Returns `a` times 2^e with 128 bits. If any dropped bit is 1, the lowest bit is set.
RLHF_X_RARE struct rlhf_x rlhf_wide_result(struct rlhf_wide a, int64_t e) {
    struct rlhf_x out = {0, 0, 0, rlhf_wide_negative(a)};
    int top = 5, n;
    a = rlhf_wide_abs(a);
    while (top > 0 && !a.w[top])
        top--;
    if (!a.w[top]) return out;
    n = __builtin_clzll(a.w[top]);
    a = rlhf_wide_shift(a, n + 64 * (5 - top));
    out.m = (rlhf_x_u128)a.w[5] << 64 | a.w[4] | ((a.w[3] | a.w[2] | a.w[1] | a.w[0]) != 0);
    out.e = e - 64 - n - 64 * (5 - top);
    return out;
}

// Returns |x| 2^-e, for x != 0; bits below 2^-320 are dropped.
RLHF_X_RARE struct rlhf_wide rlhf_wide_double(double x, int e) {
    uint64_t m;
    const int own = rlhf_x_split(x, &m);
    return rlhf_wide_shift(rlhf_wide_of(m), own - 63 - e);
}

// e^r for 0 <= r < 1: the series for r / 2^16, squared 16 times.
RLHF_X_RARE struct rlhf_wide rlhf_wide_exp(struct rlhf_wide r) {
    const struct rlhf_wide one = rlhf_wide_of(1), t = rlhf_wide_shift(r, -16);
    struct rlhf_wide s = one;
    for (uint64_t n = 18; n > 0; n--)
        s = rlhf_wide_add(one, rlhf_wide_divide(rlhf_wide_mul(t, s), n), 0);
    for (int i = 0; i < 16; i++)
        s = rlhf_wide_mul(s, s);
    return s;
}

// Returns e^x 2^-k, a number from 1 to 2, and sets *k. |x| is below 2000.
RLHF_X_RARE struct rlhf_wide rlhf_wide_exp_of(struct rlhf_wide x, int64_t *k) {
    const struct rlhf_wide two = rlhf_wide_from(rlhf_x_log2), size = rlhf_wide_abs(x);
    const int negative = rlhf_wide_negative(x);
    uint64_t n = (uint64_t)(((rlhf_x_u128)size.w[5] << 32 | size.w[4] >> 32) * 0x171547652 >> 64);
    struct rlhf_wide r;
    for (;; n++) { // n log 2 <= |x| < (n + 1) log 2; negative: (n - 1) log 2 < |x| <= n log 2
        const struct rlhf_wide whole = rlhf_wide_mul(two, rlhf_wide_of(n));
        r = negative ? rlhf_wide_add(whole, size, 1) : rlhf_wide_add(size, whole, 1);
        if (!rlhf_wide_negative(negative ? r : rlhf_wide_add(two, r, 1))) break;
    }
    *k = negative ? -(int64_t)n : (int64_t)n;
    return rlhf_wide_exp(r);
}

// Returns log(m 2^e) for 1 <= m < 2. Computes e log 2 + y + log(m / e^y), where y is log m to 117
// bits and the last term is summed from its series.
RLHF_X_RARE struct rlhf_wide rlhf_wide_log(struct rlhf_wide m, int e) {
    const struct rlhf_wide two = rlhf_wide_from(rlhf_x_log2), one = rlhf_wide_of(1);
    const rlhf_x_u128 top = RLHF_X_1 | (rlhf_x_u128)m.w[4] << 63 | m.w[3] >> 1;
    const struct rlhf_x near = rlhf_x_log_of(top >> 10 << 10, 0);
    struct rlhf_wide y = rlhf_wide_of(0), d, square;
    if (!near.negative) {
        y.w[4] = (uint64_t)(near.m >> 64), y.w[3] = (uint64_t)near.m; // 128 bits below the point
        y = rlhf_wide_shift(y, (int)near.e + 128);
    }
    d = rlhf_wide_exp(rlhf_wide_add(two, y, 1)); // 2 / e^y
    d = rlhf_wide_add(rlhf_wide_shift(rlhf_wide_mul(m, d), -1), one, 1);
    square = rlhf_wide_abs(d);
    square = rlhf_wide_shift(rlhf_wide_mul(square, square), -1);
    y = rlhf_wide_add(rlhf_wide_add(y, d, 0), square, 1);
    const struct rlhf_wide whole = rlhf_wide_mul(two, rlhf_wide_of((uint64_t)(e < 0 ? -e : e)));
    return rlhf_wide_add(y, whole, e < 0);
}

// Returns the sine of f pi / 2 or, with `want_cos`, the cosine, from its series; 0 <= f <= 1/2.
RLHF_X_RARE struct rlhf_wide rlhf_wide_sin(struct rlhf_wide f, int want_cos) {
    const struct rlhf_wide one = rlhf_wide_of(1);
    const struct rlhf_wide x =
        rlhf_wide_shift(rlhf_wide_mul(f, rlhf_wide_from(rlhf_x_quarter_pi)), 1);
    const struct rlhf_wide square = rlhf_wide_mul(x, x);
    struct rlhf_wide s = one;
    for (uint64_t n = want_cos ? 66 : 67; n > 1; n -= 2)
        s = rlhf_wide_add(one, rlhf_wide_divide(rlhf_wide_mul(square, s), n * (n - 1)), 1);
    return want_cos ? s : rlhf_wide_mul(x, s);
}

#endif
