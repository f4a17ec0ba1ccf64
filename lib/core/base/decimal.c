// decimal.c: see decimal.h.
#include "base/decimal.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 u128;

// The precision of a type. bits: the size of the significand. most: the number of decimal digits
// that is always enough to restore a number. least: the smallest number of digits that is tried.
struct precision {
    int bits, least, most;
};
static const struct precision as_double = {53, 1, 17}, as_float = {24, 6, 9};

static u128 power_of(uint64_t base, int n) {
    u128 out = 1;
    for (u128 square = base; n; n >>= 1, square *= square)
        if (n & 1) out *= square;
    return out;
}

// A number `v` as an integer: `product` = v 10^k 2^s. k is chosen so that v 10^k has 17 digits
// before the point, and s so that `product` is an integer.
struct scaled {
    u128 product;
    u128 unit;  // the distance to the next number of the type
    u128 doubt; // an error of reading: a float is read as a double, which is then rounded
    int s, exponent, is_power_of_two;
};

// Returns 0 if the integers do not fit into 128 bits, or if `s` would be negative.
static int scale(double v, const struct precision *type, struct scaled *out) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    const uint64_t fraction = bits & 0x000fffffffffffff, m = fraction | 0x0010000000000000;
    const int e = (int)(bits >> 52 & 0x7ff) - 1075; // v = m 2^e
    if (e < -102 || e > 0) return 0;
    int exponent = (e + 52) * 1233 >> 12; // floor(log10(v)), or one less
    for (;; exponent++) {
        const int k = 16 - exponent, s = -(e + k);
        if (s < 0 || k > 31) return 0;
        const u128 five = power_of(5, k), unit = five << (53 - type->bits);
        *out = (struct scaled){m * five, unit,     type->bits < 53 ? unit >> 24 : 0,
                               s,        exponent, fraction == 0};
        if (out->product >> s < power_of(10, 17)) return 1;
    }
}

// Rounds v 10^k to a multiple of `step`, and sets *c to that multiple divided by `step`. The
// multiple reads back as v if its distance from v is less than half the distance from v to the next
// number of the type. Returns 1 if the multiple reads back as v, 0 if it does not, and -1 if that
// is in doubt. For a double there is never a doubt, because no multiple lies exactly halfway
// between two numbers (`unit` is odd).
static int rounded(const struct scaled *v, uint64_t step, uint64_t *c) {
    *c = (uint64_t)(v->product >> v->s) / step;
    const u128 whole = (u128)step << v->s, rest = v->product - *c * whole;
    const int up = 2 * rest > whole || (2 * rest == whole && (*c & 1));
    *c += (uint64_t)up;
    // The neighbor below a power of two is only half as far away as the neighbor above.
    const u128 distance = (v->is_power_of_two && !up ? 4 : 2) * (up ? whole - rest : rest);
    if (distance + v->doubt < v->unit) return 1;
    return distance > v->unit + v->doubt ? 0 : -(v->doubt > 0);
}

static int shortest(double v, const struct precision *type, struct rlhf__decimal *out) {
    struct scaled x;
    if (!scale(v, type, &x)) return 0;
    uint64_t best = 0, c, step = 1;
    for (int n = 17; n > type->most; n--)
        step *= 10;
    // With fewer digits, the rounded number is farther from v. So if n digits do not read back as
    // v, fewer digits do not either, and the loop ends. This reasoning does not cover powers of
    // two, whose two neighbors are not equally far away, but the tests check all powers of two.
    for (int n = type->most; n >= type->least; n--, step *= 10) {
        const int back = rounded(&x, step, &c);
        if (back < 0) return 0;
        if (back || n == type->most) best = c, out->n = n;
        if (!back && n < type->most) break;
    }
    out->exponent = x.exponent;
    for (int i = out->n; i-- > 0; best /= 10)
        out->digit[i] = (char)('0' + best % 10);
    if (best) { // rounded up to a power of ten
        memcpy(out->digit, "1", 1);
        out->n = 1, out->exponent++;
    }
    return 1;
}

// Computes the same result as shortest(), but for any number: it tries more and more digits.
static void search(double v, const struct precision *type, struct rlhf__decimal *out) {
    char text[40];
    for (out->n = type->least;; out->n++) {
        snprintf(text, sizeof text, "%.*e", out->n - 1, v); // d.dde+NN
        const double back = strtod(text, NULL);
        if (type->bits < 53 ? (float)back == (float)v : back == v) break;
        if (out->n == type->most) break;
    }
    const char *e = strchr(text, 'e');
    out->digit[0] = text[0];
    for (int i = 1; i < out->n; i++)
        out->digit[i] = text[i + 1];
    out->exponent = e ? (int)strtol(e + 1, NULL, 10) : 0;
}

static struct rlhf__decimal decimal_of(double v, const struct precision *type) {
    struct rlhf__decimal out = {.negative = signbit(v) != 0};
    if (!shortest(fabs(v), type, &out)) search(fabs(v), type, &out);
    while (out.n > 1 && out.digit[out.n - 1] == '0')
        out.n--;
    return out;
}

struct rlhf__decimal rlhf__decimal_of(double v) {
    return decimal_of(v, &as_double);
}

const char *rlhf__decimal_text(const struct rlhf__decimal *d, int scientific, char out[40]) {
    const int ones = scientific ? 0 : d->exponent; // index of the digit before the point
    char *to = out;
    if (d->negative) *to++ = '-';
    for (int i = ones < 0 ? ones : 0; i < d->n || i <= ones; i++) {
        *to++ = '0';
        if (i >= 0 && i < d->n) to[-1] = d->digit[i];
        if (i == ones && i + 1 < d->n) *to++ = '.';
    }
    *to = '\0';
    if (scientific)
        snprintf(to, (size_t)(out + 40 - to), "e%c%02d", d->exponent < 0 ? '-' : '+',
                 abs(d->exponent));
    return out;
}

const char *rlhf__format_double(double v, int real, char out[40]) {
    if (!isfinite(v)) return memcpy(out, "null", sizeof "null");
    const struct rlhf__decimal d = rlhf__decimal_of(v);
    // Choose the format as printf's %g does with d.n digits. Exception: a number below 1e9 with few
    // digits gets no exponent, so 10 becomes "10", not "1e+01".
    const int plain = d.n < 10 && d.exponent < 9;
    rlhf__decimal_text(&d, d.exponent < -4 || (d.exponent >= d.n && !plain), out);
    if (real && !strpbrk(out, ".e")) memcpy(out + strlen(out), ".0", sizeof ".0");
    return out;
}

const char *rlhf__format_float(float v, char out[40]) {
    if (!isfinite(v)) return memcpy(out, "null", sizeof "null");
    const struct rlhf__decimal d = decimal_of((double)v, &as_float);
    const int digits = d.n > as_float.least ? d.n : as_float.least; // like printf's %g
    return rlhf__decimal_text(&d, d.exponent < -4 || d.exponent >= digits, out);
}
