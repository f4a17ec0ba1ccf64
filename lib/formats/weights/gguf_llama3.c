// gguf_llama3.c: see gguf_llama3.h.
#include "weights/gguf_llama3.h"

#include <math.h>
#include <rlhf/exact.h>

static const double pi = 3.14159265358979323846;

float rlhf__gguf_llama3_divisor(const struct rlhf__gguf_llama3 *r, int32_t i) {
    // The number of tokens in one full turn.
    const double length = 2 * pi * rlhf_pow(r->theta, 2.0 * i / r->dim);
    const double share = (r->context / length - r->low) / (r->high - r->low);
    if (length < r->context / r->high) return 1;
    if (length > r->context / r->low) return (float)r->factor;
    return (float)(1 / ((1 - share) / r->factor + share));
}

static int is_same(const struct rlhf__gguf_llama3 *r, const float *x) {
    for (int32_t i = 0; i < r->dim / 2; i++) {
        const double want = (double)rlhf__gguf_llama3_divisor(r, i);
        if (!(fabs((double)x[i] - want) <= 1e-4 * want)) return 0; // also a NaN
    }
    return 1;
}

// What the divisors say about the edges of the bands, context / high and context / low.
struct bands {
    double one, all; // the longest wavelength with the divisor 1, the shortest with the factor
    // 1 / wavelength and share of the first and the last divisor between. 1 / divisor is
    // (1 - share) / factor + share, and the share is a line in 1 / wavelength.
    double first[2], last[2];
    int32_t n; // divisors between
};

static void look(const struct rlhf__gguf_llama3 *r, const float *x, struct bands *b) {
    for (int32_t i = 0; i < r->dim / 2; i++) {
        const double d = (double)x[i], wave = 2 * pi * rlhf_pow(r->theta, 2.0 * i / r->dim);
        if (i == 0) *b = (struct bands){.one = wave / 4, .all = 0};
        if (d <= 1.0001) b->one = wave;
        if (d >= 0.9999 * r->factor && b->all == 0) b->all = wave;
        if (d <= 1.0001 || d >= 0.9999 * r->factor) continue;
        double *point = b->n++ ? b->last : b->first;
        point[0] = 1 / wave;
        point[1] = (1 / d - 1 / r->factor) / (1 - 1 / r->factor);
    }
}

int rlhf__gguf_llama3_find(struct rlhf__gguf_llama3 *r, const float *x) {
    struct bands b = {0};
    if (is_same(r, x)) return 1;
    look(r, x, &b);
    double low =
        b.n ? b.first[0] / (1 + 3 * b.first[1]) : rlhf_pow(b.one * b.all * b.all, -1.0 / 3);
    double high =
        b.n ? 4 * low : rlhf_pow(b.one * b.one * b.all, -1.0 / 3); // both over the context
    const double context = r->context;
    r->context = floor(1 / low + 0.5);
    if (is_same(r, x)) return 1;
    if (b.n > 1) {
        const double slope = (b.last[1] - b.first[1]) / (b.last[0] - b.first[0]);
        low = b.first[0] - b.first[1] / slope;
        high = low + 1 / slope;
    }
    r->context = context;
    r->low = low * context;
    r->high = high * context;
    const double unit = b.n > 1 ? 1e3 : 1e9; // a line through two points has rounding errors
    r->low = floor(r->low * unit + 0.5) / unit;
    r->high = floor(r->high * unit + 0.5) / unit;
    return is_same(r, x);
}
