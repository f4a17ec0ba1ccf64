// decimal.c: see decimal.h.
#include "answer/decimal.h"

#include <math.h>
#include <rlhf/exact.h>
#include <string.h>

// The product or the sum of two decimals: an integer, as digits, times 10^exponent.
struct wide {
    int32_t n;
    int64_t exponent;
    uint8_t digit[2 * RLHF__DECIMAL_DIGITS + 2]; // 0 to 9, the last digit first
};

void rlhf__decimal_settle(struct rlhf__answer_decimal *x) {
    int32_t zeros = 0;
    while (zeros < x->n && x->digit[zeros] == '0')
        zeros++;
    x->n -= zeros;
    memmove(x->digit, x->digit + zeros, (size_t)x->n);
    for (; x->n && x->digit[x->n - 1] == '0'; x->n--)
        x->exponent++;
    if (!x->n) x->sign = 0;
    if (!x->n) x->exponent = 0;
}

void rlhf__decimal_set(struct rlhf__answer_decimal *x, int32_t value) {
    *x = (struct rlhf__answer_decimal){.sign = 1, .n = 1};
    x->digit[0] = (char)('0' + value);
    rlhf__decimal_settle(x);
}

static void trim(struct wide *x) {
    int32_t zeros = 0;
    while (x->n && !x->digit[x->n - 1])
        x->n--;
    while (zeros < x->n && !x->digit[zeros])
        zeros++;
    x->n -= zeros;
    x->exponent = x->n ? x->exponent + zeros : 0;
    memmove(x->digit, x->digit + zeros, (size_t)x->n);
}

// |a| * |b|
static void multiply(const struct rlhf__answer_decimal *a, const struct rlhf__answer_decimal *b,
                     struct wide *out) {
    *out = (struct wide){.n = a->n + b->n, .exponent = a->exponent + b->exponent};
    for (int32_t i = 0; i < a->n; i++) {
        int32_t carry = 0;
        for (int32_t j = 0; j < b->n || carry; j++) {
            carry += out->digit[i + j];
            if (j < b->n) carry += (a->digit[a->n - 1 - i] - '0') * (b->digit[b->n - 1 - j] - '0');
            out->digit[i + j] = (uint8_t)(carry % 10);
            carry /= 10;
        }
    }
    trim(out);
}

int rlhf__ratio_add(const struct rlhf__answer_decimal *whole, const struct rlhf__ratio *part,
                    struct rlhf__ratio *out) {
    struct wide w;
    *out = *part;
    if (!whole->sign) return 1;
    multiply(whole, &part->den, &w);
    const struct rlhf__answer_decimal *p = &part->num;
    const int64_t low = w.exponent < p->exponent || !p->n ? w.exponent : p->exponent;
    const int64_t top =
        w.n + w.exponent > p->n + p->exponent ? w.n + w.exponent : p->n + p->exponent;
    if (top - low + 1 > RLHF__DECIMAL_DIGITS) return 0;
    struct rlhf__answer_decimal sum = {.sign = 1, .n = (int32_t)(top - low + 1), .exponent = low};
    int32_t carry = 0;
    for (int32_t i = 0; i < sum.n; i++) { // digit i stands for 10^(low + i)
        const int64_t in_w = low + i - w.exponent, in_p = p->n - 1 - (low + i - p->exponent);
        if (in_w >= 0 && in_w < w.n) carry += w.digit[in_w];
        if (in_p >= 0 && in_p < p->n) carry += p->digit[in_p] - '0';
        sum.digit[sum.n - 1 - i] = (char)('0' + carry % 10);
        carry /= 10;
    }
    rlhf__decimal_settle(&sum);
    out->num = sum;
    return 1;
}

int rlhf__ratio_equal(const struct rlhf__ratio *a, int32_t shift_a, const struct rlhf__ratio *b,
                      int32_t shift_b) {
    struct wide left, right;
    if (a->num.sign != b->num.sign) return 0;
    if (!a->num.sign) return 1;
    multiply(&a->num, &b->den, &left);
    multiply(&b->num, &a->den, &right);
    return left.n == right.n && left.exponent + shift_a == right.exponent + shift_b &&
           memcmp(left.digit, right.digit, (size_t)left.n) == 0;
}

// Multiplies by 10^exponent in two steps, so that no intermediate result overflows if the final one
// does not.
static double value_of(const struct rlhf__answer_decimal *x, int64_t shift) {
    double v = 0;
    int64_t e = x->exponent + shift;
    int32_t n = x->n < 40 ? x->n : 40; // more digits do not change a double
    for (int32_t i = 0; i < n; i++)
        v = 10 * v + (x->digit[i] - '0');
    e += x->n - n;
    const int64_t half = e / 2;
    return x->sign * (v * rlhf_pow(10, (double)half) * rlhf_pow(10, (double)(e - half)));
}

double rlhf__ratio_value(const struct rlhf__ratio *x, int32_t shift) {
    return value_of(&x->num, shift) / value_of(&x->den, 0);
}
