// hot_truncate.c: top-k and top-p: decides which logits of a row are kept; the others become
// -inf.
//
// Tokens are ranked by logit; if logits are equal, the lowest id comes first. Instead of sorting,
// the code maps the logits to integers that have the same order. Three passes of a radix histogram
// over these integers find the smallest value that is kept, and how many tokens with this value are
// kept. Sums run in the order of ids, so the set depends only on the row.
#include "machine/hot.h"
#include "machine/vec.h"

#include <math.h>

#define BINS 2048u

// Unsigned keys that are ordered like the floats: a larger float has a larger key. -0 counts as +0.
static inline uint32_t key_of(float x) {
    uint32_t u;
    x += 0.0f;
    memcpy(&u, &x, sizeof u);
    return u & 0x80000000u ? ~u : u | 0x80000000u;
}

// The kept set: all ids with a key above `key`, and the first `ties` ids with exactly that key.
struct cut {
    uint32_t key;
    size_t ties;
};

static const int shifts[3] = {21, 10, 0};
static const uint32_t widths[3] = {11, 11, 10};

// Finds the shortest prefix of the ranking whose total weight reaches `want`. weight[i] is the
// weight of id i; if `weight` is NULL (top-k), every id has the weight 1.
static struct cut find_cut(const float *z, const float *weight, size_t n, double want) {
    double bin[BINS];
    uint32_t prefix = 0, prefix_mask = 0;
    double above = 0.0, last = 0.0;
    for (int pass = 0; pass < 3; pass++) {
        const uint32_t count = 1u << widths[pass];
        for (uint32_t b = 0; b < count; b++)
            bin[b] = 0.0;
        for (size_t i = 0; i < n; i++) {
            uint32_t k = key_of(z[i]);
            if ((k & prefix_mask) != prefix) continue;
            bin[k >> shifts[pass] & (count - 1)] += weight ? (double)weight[i] : 1.0;
        }
        uint32_t b = count - 1;
        for (; b > 0 && (bin[b] == 0.0 || above + bin[b] < want); b--)
            above += bin[b];
        if (above + bin[b] < want) return (struct cut){0, n}; // rounding error: keep all
        prefix |= b << shifts[pass];
        prefix_mask |= (count - 1) << shifts[pass];
        last = bin[b];
    }
    struct cut c = {prefix, 0};
    size_t equal = 0;
    for (size_t i = 0; i < n; i++)
        equal += key_of(z[i]) == prefix;
    const double each = last / (double)equal; // exact: equal logits have equal weights
    while (c.ties < equal && above + each * (double)c.ties < want)
        c.ties++;
    return c;
}

static void apply_cut(float *z, size_t n, struct cut c) {
    size_t ties = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t k = key_of(z[i]);
        if (k > c.key || (k == c.key && ties++ < c.ties)) continue;
        z[i] = -INFINITY;
    }
}

void RLHF__HOT(head_truncate)(float *z, size_t n, float it, int32_t top_k, double top_p,
                              float *work) {
    float max = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        if (!(z[i] <= INFINITY)) return; // a NaN has no rank; the log-probs become NaN
        max = z[i] > max ? z[i] : max;
    }
    if (top_k > 0 && (size_t)top_k < n) apply_cut(z, n, find_cut(z, NULL, n, (double)top_k));
    if (top_p >= 1.0) return;
    double total = 0.0;
    const vf m = vf_set1(max), s = vf_set1(it);
    for (size_t i = 0; i < n; i += VF_LANES) {
        size_t left = n - i < VF_LANES ? n - i : VF_LANES;
        vf e = vf_exp(vf_max(vf_set1(-1e30f), vf_mul(vf_sub(vf_load_n(z + i, left), m), s)));
        vf_store_n(work + i, e, left);
    }
    for (size_t i = 0; i < n; i++)
        total += (double)work[i];
    apply_cut(z, n, find_cut(z, work, n, top_p * total));
}
