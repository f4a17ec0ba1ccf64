// jinja_number.c: see jinja_number.h.
#include "values/jinja_number.h"

#include <math.h>
#include <rlhf/exact.h>
#include <string.h>

// 4300 digits have 14285 bits. A product has up to twice as many before it is refused.
enum { LIMBS_MAX = 447, ROOM = 2 * LIMBS_MAX + 4 };

// The absolute value of an integer; the highest limb is not 0.
struct magnitude {
    uint32_t n, limb[ROOM];
};

// ---- absolute values ----

static void cut_zeros(struct magnitude *m) {
    while (m->n && !m->limb[m->n - 1])
        m->n--;
}

static void small(struct magnitude *m, uint64_t v) {
    m->limb[0] = (uint32_t)v;
    m->limb[1] = (uint32_t)(v >> 32);
    m->n = 2;
    cut_zeros(m);
}

static void of_value(struct magnitude *m, rlhf__value v) {
    if (v.type != RLHF__JINJA_BIG) {
        small(m, v.i < 0 ? 0 - (uint64_t)v.i : (uint64_t)v.i);
        return;
    }
    m->n = v.big->n;
    memcpy(m->limb, v.big->limb, m->n * sizeof *m->limb);
}

static int order(const struct magnitude *a, const struct magnitude *b) {
    if (a->n != b->n) return a->n < b->n ? -1 : 1;
    for (uint32_t i = a->n; i-- > 0;)
        if (a->limb[i] != b->limb[i]) return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

static void add(const struct magnitude *a, const struct magnitude *b, struct magnitude *out) {
    uint64_t carry = 0;
    uint32_t n = a->n > b->n ? a->n : b->n;
    for (uint32_t i = 0; i < n; i++) {
        carry += (uint64_t)(i < a->n ? a->limb[i] : 0) + (i < b->n ? b->limb[i] : 0);
        out->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    out->limb[n++] = (uint32_t)carry;
    out->n = n;
    cut_zeros(out);
}

// a - b, which must not be negative.
static void subtract(const struct magnitude *a, const struct magnitude *b, struct magnitude *out) {
    int64_t borrow = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        borrow += (int64_t)a->limb[i] - (i < b->n ? b->limb[i] : 0);
        out->limb[i] = (uint32_t)borrow;
        borrow >>= 32;
    }
    out->n = a->n;
    cut_zeros(out);
}

static void multiply(const struct magnitude *a, const struct magnitude *b, struct magnitude *out) {
    out->n = a->n + b->n;
    memset(out->limb, 0, out->n * sizeof *out->limb);
    for (uint32_t i = 0; i < a->n; i++) {
        uint64_t carry = 0;
        for (uint32_t k = 0; k < b->n; k++) {
            carry += (uint64_t)a->limb[i] * b->limb[k] + out->limb[i + k];
            out->limb[i + k] = (uint32_t)carry;
            carry >>= 32;
        }
        out->limb[i + b->n] = (uint32_t)carry;
    }
    cut_zeros(out);
}

// m = m * by + plus.
static void scale(struct magnitude *m, uint32_t by, uint32_t plus) {
    uint64_t carry = plus;
    for (uint32_t i = 0; i < m->n; i++) {
        carry += (uint64_t)m->limb[i] * by;
        m->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry) m->limb[m->n++] = (uint32_t)carry;
}

// m = m / by; returns the remainder.
static uint32_t divide_small(struct magnitude *m, uint32_t by) {
    uint64_t rest = 0;
    for (uint32_t i = m->n; i-- > 0;) {
        rest = rest << 32 | m->limb[i];
        m->limb[i] = (uint32_t)(rest / by);
        rest %= by;
    }
    cut_zeros(m);
    return (uint32_t)rest;
}

static void shift(struct magnitude *m, uint32_t bits) {
    const uint32_t limbs = bits / 32, rest = bits % 32;
    memmove(m->limb + limbs, m->limb, m->n * sizeof *m->limb);
    memset(m->limb, 0, limbs * sizeof *m->limb);
    m->n += limbs;
    if (rest) scale(m, (uint32_t)1 << rest, 0);
}

static uint32_t bits_of(const struct magnitude *m) {
    return m->n ? 32 * m->n - (uint32_t)__builtin_clz(m->limb[m->n - 1]) : 0;
}

// Subtracts b times q from the limbs of `rest` from `at` on. If the result would be negative, adds
// b once more. Returns the digit that was right. (Knuth, The Art of Computer Programming, 4.3.1 D.)
static uint32_t take_multiple(struct magnitude *rest, const struct magnitude *b, uint32_t at,
                              uint64_t q) {
    int64_t borrow = 0;
    uint64_t carry = 0;
    for (uint32_t i = 0; i <= b->n; i++) {
        carry += q * (i < b->n ? b->limb[i] : 0);
        borrow += (int64_t)rest->limb[at + i] - (int64_t)(uint32_t)carry;
        rest->limb[at + i] = (uint32_t)borrow;
        borrow >>= 32;
        carry >>= 32;
    }
    for (carry = 0; borrow < 0; borrow++, q--) {
        for (uint32_t i = 0; i <= b->n; i++) {
            carry += (uint64_t)rest->limb[at + i] + (i < b->n ? b->limb[i] : 0);
            rest->limb[at + i] = (uint32_t)carry;
            carry >>= 32;
        }
    }
    return (uint32_t)q;
}

// *q = a / b and *rest = a % b, for b > 0.
static void divide(const struct magnitude *a, const struct magnitude *by, struct magnitude *q,
                   struct magnitude *rest) {
    struct magnitude b = *by;
    *q = *rest = *a;
    if (b.n == 1) {
        small(rest, divide_small(q, b.limb[0]));
        return;
    }
    q->n = 0;
    if (order(a, &b) < 0) return;
    const uint32_t up = (uint32_t)__builtin_clz(b.limb[b.n - 1]);
    shift(&b, up);
    rest->limb[rest->n] = 0;
    shift(rest, up);
    if (rest->n == a->n) rest->limb[rest->n++] = 0;
    const uint32_t n = rest->n - b.n;
    for (uint32_t i = n; i-- > 0;) {
        const uint64_t top = (uint64_t)rest->limb[i + b.n] << 32 | rest->limb[i + b.n - 1];
        uint64_t guess = top / b.limb[b.n - 1], left = top % b.limb[b.n - 1];
        while (guess >> 32 || guess * b.limb[b.n - 2] > (left << 32 | rest->limb[i + b.n - 2])) {
            guess--;
            left += b.limb[b.n - 1];
            if (left >> 32) break;
        }
        q->limb[i] = take_multiple(rest, &b, i, guess);
    }
    q->n = n;
    cut_zeros(q);
    cut_zeros(rest);
    for (uint32_t i = 0, low = up; low && i < rest->n; i++)
        rest->limb[i] =
            rest->limb[i] >> low | (i + 1 < rest->n ? rest->limb[i + 1] << (32 - low) : 0);
    cut_zeros(rest);
}

// The nearest float of m * 2^by. If `inexact` is 1, m is slightly too small.
static double nearest(const struct magnitude *m, int inexact, int by) {
    const uint32_t bits = bits_of(m), low = bits > 64 ? bits - 64 : 0;
    uint64_t top = 0;
    int sticky = inexact;
    for (uint32_t i = 0; i < m->n; i++) {
        const int64_t at = (int64_t)32 * i - low;
        if (at >= 0)
            top |= (uint64_t)m->limb[i] << at;
        else if (at > -32)
            top |= m->limb[i] >> -at;
        if (at < 0) sticky |= at <= -32 ? m->limb[i] != 0 : (m->limb[i] << (32 + at)) != 0;
    }
    // The lowest of 64 bits may represent all bits below it.
    if (bits > 54 && sticky) top |= 1;
    if (bits > 54) {
        const int drop = bits >= 64 ? 11 : (int)bits - 53;
        const uint64_t rest = top & (((uint64_t)1 << drop) - 1), half = (uint64_t)1 << (drop - 1);
        top >>= drop;
        top += rest > half || (rest == half && (top & 1));
        return ldexp((double)top, drop + (int)low + by);
    }
    return ldexp((double)top, (int)low + by);
}

// ---- values ----

static rlhf__value too_long(struct rlhf__jinja_work *w) {
    return rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "an integer of more than %d digits",
                            RLHF__JINJA_DIGITS_MAX);
}

static rlhf__value made(struct rlhf__jinja_work *w, const struct magnitude *m, int negative) {
    const uint64_t low = (m->n > 0 ? m->limb[0] : 0) | (uint64_t)(m->n > 1 ? m->limb[1] : 0) << 32;
    if (m->n <= 2 && low <= (uint64_t)INT64_MAX + (uint64_t)negative)
        return rlhf__jinja_int(negative ? (int64_t)(0 - low) : (int64_t)low);
    if (m->n > LIMBS_MAX) return too_long(w);
    struct rlhf__jinja_big *big = rlhf__jinja_alloc(w, sizeof *big + m->n * sizeof *big->limb);
    if (!big) return rlhf__jinja_undefined();
    big->negative = negative;
    big->n = m->n;
    memcpy(big->limb, m->limb, m->n * sizeof *big->limb);
    return (rlhf__value){.type = RLHF__JINJA_BIG, .big = big};
}

int rlhf__jinja_sign(rlhf__value v) {
    if (v.type == RLHF__JINJA_BIG) return v.big->negative ? -1 : 1;
    return v.i < 0 ? -1 : v.i > 0;
}

static rlhf__value sum(struct rlhf__jinja_work *w, rlhf__value a, rlhf__value b, int minus) {
    struct magnitude x, y, out;
    const int sa = rlhf__jinja_sign(a) < 0, sb = (rlhf__jinja_sign(b) < 0) != minus;
    of_value(&x, a);
    of_value(&y, b);
    if (sa == sb) {
        add(&x, &y, &out);
        return made(w, &out, sa);
    }
    if (order(&x, &y) < 0) {
        subtract(&y, &x, &out);
        return made(w, &out, sb);
    }
    subtract(&x, &y, &out);
    return made(w, &out, sa && out.n);
}

static rlhf__value product(struct rlhf__jinja_work *w, rlhf__value a, rlhf__value b) {
    struct magnitude x, y, out;
    of_value(&x, a);
    of_value(&y, b);
    if (!rlhf__jinja_pay(w, (size_t)4 * x.n * y.n)) return rlhf__jinja_undefined();
    multiply(&x, &y, &out);
    return made(w, &out, out.n && rlhf__jinja_sign(a) * rlhf__jinja_sign(b) < 0);
}

// a // b or a % b, rounded down as in Python.
static rlhf__value divided(struct rlhf__jinja_work *w, rlhf__value a, rlhf__value b, int rest) {
    struct magnitude x, y, q, r, one;
    const int unlike = rlhf__jinja_sign(a) * rlhf__jinja_sign(b) < 0;
    of_value(&x, a);
    of_value(&y, b);
    if (!rlhf__jinja_pay(w, (size_t)4 * x.n * y.n)) return rlhf__jinja_undefined();
    divide(&x, &y, &q, &r);
    if (unlike && r.n) {
        small(&one, 1);
        add(&q, &one, &x);
        q = x;
        subtract(&y, &r, &x);
        r = x;
    }
    if (rest) return made(w, &r, r.n && rlhf__jinja_sign(b) < 0);
    return made(w, &q, q.n && unlike);
}

static rlhf__value too_large(struct rlhf__jinja_work *w) {
    return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "an integer that is too large for a float");
}

static rlhf__value quotient(struct rlhf__jinja_work *w, rlhf__value a, rlhf__value b) {
    struct magnitude x, y, q, r;
    of_value(&x, a);
    of_value(&y, b);
    const int up = 66 - (int)bits_of(&x) + (int)bits_of(&y);
    if (!rlhf__jinja_pay(w, (size_t)4 * x.n * y.n)) return rlhf__jinja_undefined();
    if (!x.n) return rlhf__jinja_float(rlhf__jinja_sign(b) < 0 ? -0.0 : 0.0);
    if (up > 0)
        shift(&x, (uint32_t)up);
    else
        shift(&y, (uint32_t)-up);
    divide(&x, &y, &q, &r);
    const double f = nearest(&q, r.n != 0, -up);
    if (isinf(f)) return too_large(w);
    return rlhf__jinja_float(rlhf__jinja_sign(a) * rlhf__jinja_sign(b) < 0 ? -f : f);
}

static rlhf__value power(struct rlhf__jinja_work *w, rlhf__value x, rlhf__value y) {
    rlhf__value out = rlhf__jinja_int(1);
    if (y.type == RLHF__JINJA_BIG) {
        if (x.type == RLHF__JINJA_BIG || x.i > 1 || x.i < -1 || y.big->negative) return too_long(w);
        return rlhf__jinja_int(x.i == -1 && !(y.big->limb[0] & 1) ? 1 : x.i);
    }
    if (y.i < 0) {
        const double base = rlhf__jinja_real(w, x);
        if (rlhf__jinja_sign(x)) return rlhf__jinja_float(rlhf_pow(base, (double)y.i));
        return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "a division by 0");
    }
    for (uint64_t left = (uint64_t)y.i; left && !w->state; left >>= 1) {
        if (left & 1) out = rlhf__jinja_whole(w, RLHF__JINJA_OP_MUL, out, x);
        if (left > 1) x = rlhf__jinja_whole(w, RLHF__JINJA_OP_MUL, x, x);
    }
    return out;
}

rlhf__value rlhf__jinja_whole(struct rlhf__jinja_work *w, int32_t op, rlhf__value a,
                              rlhf__value b) {
    const int fits = a.type != RLHF__JINJA_BIG && b.type != RLHF__JINJA_BIG;
    const int64_t x = fits ? a.i : 0, y = fits ? b.i : 0;
    int64_t out = 0;
    if (w->state) return rlhf__jinja_undefined();
    switch (op) {
    case RLHF__JINJA_OP_ADD:
        if (fits && !__builtin_add_overflow(x, y, &out)) return rlhf__jinja_int(out);
        return sum(w, a, b, 0);
    case RLHF__JINJA_OP_SUB:
        if (fits && !__builtin_sub_overflow(x, y, &out)) return rlhf__jinja_int(out);
        return sum(w, a, b, 1);
    case RLHF__JINJA_OP_MUL:
        if (fits && !__builtin_mul_overflow(x, y, &out)) return rlhf__jinja_int(out);
        return product(w, a, b);
    case RLHF__JINJA_OP_POW:
        return power(w, a, b);
    default:
        break;
    }
    if (!rlhf__jinja_sign(b)) return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "a division by 0");
    if (op == RLHF__JINJA_OP_DIV) return quotient(w, a, b);
    if (!fits || y == -1) return divided(w, a, b, op == RLHF__JINJA_OP_MOD);
    const int down = x % y != 0 && (x < 0) != (y < 0);
    return rlhf__jinja_int(op == RLHF__JINJA_OP_FLOOR ? x / y - down : x % y + (down ? y : 0));
}

static int order_wholes(rlhf__value a, rlhf__value b) {
    if (a.type != RLHF__JINJA_BIG && b.type != RLHF__JINJA_BIG) return a.i < b.i ? -1 : a.i > b.i;
    const int sa = rlhf__jinja_sign(a), sb = rlhf__jinja_sign(b);
    struct magnitude x, y;
    if (sa != sb) return sa < sb ? -1 : 1;
    of_value(&x, a);
    of_value(&y, b);
    return sa * order(&x, &y);
}

// The absolute value of a finite float without its fraction.
static void of_float(struct magnitude *m, double f) {
    int by = 0;
    const double part = frexp(fabs(trunc(f)), &by);
    if (by < 64) {
        small(m, (uint64_t)fabs(trunc(f)));
        return;
    }
    small(m, (uint64_t)ldexp(part, 64));
    shift(m, (uint32_t)(by - 64));
}

int rlhf__jinja_compare(rlhf__value a, rlhf__value b) {
    const int fa = a.type == RLHF__JINJA_FLOAT, fb = b.type == RLHF__JINJA_FLOAT;
    if (!fa && !fb) return order_wholes(a, b);
    if (fa && fb) return a.f < b.f ? -1 : a.f > b.f ? 1 : a.f >= b.f ? 0 : 2;
    if (fa) {
        const int back = rlhf__jinja_compare(b, a);
        return back == 2 ? 2 : -back;
    }
    if (isnan(b.f)) return 2;
    if (isinf(b.f)) return b.f > 0 ? -1 : 1;
    const int sa = rlhf__jinja_sign(a), sb = b.f < 0 ? -1 : b.f > 0;
    struct magnitude x, y;
    if (sa != sb) return sa < sb ? -1 : 1;
    of_value(&x, a);
    of_float(&y, b.f);
    const int parts = order(&x, &y), fraction = fabs(trunc(b.f)) < fabs(b.f);
    return sa * (parts ? parts : fraction ? -1 : 0);
}

double rlhf__jinja_real(struct rlhf__jinja_work *w, rlhf__value v) {
    struct magnitude m;
    if (v.type == RLHF__JINJA_FLOAT) return v.f;
    if (v.type != RLHF__JINJA_BIG) return (double)v.i;
    of_value(&m, v);
    const double f = nearest(&m, 0, 0);
    if (isinf(f)) too_large(w);
    return v.big->negative ? -f : f;
}

rlhf__value rlhf__jinja_truncated(struct rlhf__jinja_work *w, double f) {
    struct magnitude m;
    if (!isfinite(f))
        return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "an integer of an infinite number");
    of_float(&m, f);
    return made(w, &m, f < 0 && m.n);
}

// ---- digits ----

rlhf__value rlhf__jinja_digits(struct rlhf__jinja_work *w, rlhf_str s, uint32_t base) {
    struct magnitude m = {0};
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        const uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                               : c >= 'a' && c <= 'z' ? (uint32_t)(c - 'a' + 10)
                               : c >= 'A' && c <= 'Z' ? (uint32_t)(c - 'A' + 10)
                                                      : 36;
        if (digit >= base) return rlhf__jinja_undefined();
        n += n || digit;
        if (n > RLHF__JINJA_DIGITS_MAX || m.n > LIMBS_MAX) return too_long(w);
        if (m.n)
            scale(&m, base, digit);
        else
            small(&m, digit);
        if (!rlhf__jinja_pay(w, (size_t)4 * m.n)) return rlhf__jinja_undefined();
    }
    return s.len ? made(w, &m, 0) : rlhf__jinja_undefined();
}

rlhf_str rlhf__jinja_digits_of(struct rlhf__jinja_work *w, rlhf__value v, uint32_t base) {
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    struct magnitude m;
    uint32_t chunk = base, per_chunk = 1;
    of_value(&m, v);
    const size_t room = (size_t)32 * m.n + 8;
    char *out = rlhf__jinja_alloc(w, room);
    if (!out || !rlhf__jinja_pay(w, (size_t)m.n * m.n * 4)) return (rlhf_str){"", 0};
    while (chunk < 100000000 && chunk <= UINT32_MAX / base) {
        chunk *= base;
        per_chunk++;
    }
    size_t at = room;
    do {
        uint32_t part = divide_small(&m, chunk);
        for (uint32_t i = 0; m.n ? i < per_chunk : part || (!i && at == room); i++, part /= base)
            out[--at] = digits[part % base];
    } while (m.n);
    if (rlhf__jinja_sign(v) < 0) out[--at] = '-';
    return (rlhf_str){out + at, room - at};
}
