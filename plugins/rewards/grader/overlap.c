// overlap.c: see overlap.h.
#include "grader/overlap.h"

#include "grader/lcs.h"

#include <rlhf/exact.h>

#include <stdlib.h>
#include <string.h>

// Groups of n adjacent words of a text (0) and its reference (1).
struct count {
    uint64_t total[2], common; // common: each group as often as it is in both
};

// ---- counting ----

static int compare(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// Room for one pair of texts.
struct grams {
    uint32_t *number[2]; // [n] of the group that begins at a word; equal for equal groups
    uint64_t *key[2];    // [n] sorted in the end
    uint64_t *all;       // [n of both]
};

static void grams_finish(const rlhf_host *host, struct grams *g) {
    for (int k = 0; k < 2; k++) {
        host->free(host, g->number[k]);
        host->free(host, g->key[k]);
    }
    host->free(host, g->all);
}

static int grams_init(const struct rlhf__word_pair *p, struct grams *g) {
    const rlhf_host *h = p->host;
    g->all = h->alloc(h, ((uint64_t)p->n[0] + p->n[1] + 1) * sizeof *g->all);
    for (int k = 0; k < 2; k++) {
        g->number[k] = h->alloc(h, ((uint64_t)p->n[k] + 1) * sizeof **g->number);
        g->key[k] = h->alloc(h, ((uint64_t)p->n[k] + 1) * sizeof **g->key);
        if (!g->number[k] || !g->key[k]) return 0;
    }
    return g->all != NULL;
}

static uint32_t place(const uint64_t *sorted, size_t n, uint64_t key) {
    size_t lo = 0;
    while (lo < n) {
        const size_t mid = (lo + n) / 2;
        if (sorted[mid] < key)
            lo = mid + 1;
        else
            n = mid;
    }
    return (uint32_t)lo;
}

static uint64_t common(const uint64_t *a, size_t n_a, const uint64_t *b, size_t n_b) {
    uint64_t n = 0;
    for (size_t i = 0, k = 0; i < n_a && k < n_b;) {
        n += a[i] == b[k];
        const int first = a[i] <= b[k], second = b[k] <= a[i];
        i += (size_t)first;
        k += (size_t)second;
    }
    return n;
}

// Counts the groups of `size` words, from the numbers of those of size - 1 words.
static void count_groups(const struct rlhf__word_pair *p, struct grams *g, uint32_t size,
                         struct count *out) {
    size_t n[2], n_all = 0;
    for (int k = 0; k < 2; k++) {
        n[k] = p->n[k] >= size ? p->n[k] - size + 1 : 0;
        for (size_t i = 0; i < n[k]; i++)
            g->key[k][i] = (uint64_t)g->number[k][i] << 32 | p->word[k][i + size - 1];
        memcpy(g->all + n_all, g->key[k], n[k] * sizeof *g->all);
        n_all += n[k];
        out->total[k] = n[k];
    }
    qsort(g->all, n_all, sizeof *g->all, compare);
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < n[k]; i++)
            g->number[k][i] = place(g->all, n_all, g->key[k][i]);
        qsort(g->key[k], n[k], sizeof **g->key, compare);
    }
    out->common = common(g->key[0], n[0], g->key[1], n[1]);
}

// Counts the groups of 1 to `most` words.
static rlhf_status count_all(const struct rlhf__word_pair *p, uint32_t most, struct count *out) {
    struct grams g = {{NULL, NULL}, {NULL, NULL}, NULL};
    const int ok = grams_init(p, &g);
    for (uint32_t size = 1; ok && size <= most; size++)
        count_groups(p, &g, size, &out[size - 1]);
    grams_finish(p->host, &g);
    return ok ? RLHF_OK : (p->host->fail)(p->host, RLHF_E_NOMEM, "out of memory");
}

// ---- the grades ----

rlhf_status rlhf__overlap_bleu(const struct rlhf__word_pair *p, double *out) {
    struct count c[4] = {{{0, 0}, 0}};
    double sum = 0, half = 1;
    uint32_t orders = 0;
    *out = 0;
    RLHF_TRY(count_all(p, 4, c));
    if (c[0].common == 0) return RLHF_OK; // then no larger group is common either
    for (; orders < 4 && c[orders].total[0]; orders++) {
        const double total = (double)c[orders].total[0];
        if (c[orders].common == 0) half *= 2;
        sum += c[orders].common ? rlhf_log((double)c[orders].common / total)
                                : rlhf_log(1 / (half * total));
    }
    const double brevity = p->n[0] < p->n[1] ? rlhf_exp(1 - (double)p->n[1] / p->n[0]) : 1;
    *out = brevity * rlhf_exp(sum / orders);
    return RLHF_OK;
}

rlhf_status rlhf__overlap_gleu(const struct rlhf__word_pair *p, double *out) {
    struct count c[4] = {{{0, 0}, 0}};
    uint64_t match = 0, total[2] = {0, 0};
    RLHF_TRY(count_all(p, 4, c));
    for (int i = 0; i < 4; i++) {
        match += c[i].common;
        total[0] += c[i].total[0];
        total[1] += c[i].total[1];
    }
    const uint64_t most = total[0] > total[1] ? total[0] : total[1];
    *out = most ? (double)match / (double)most : 0;
    return RLHF_OK;
}

static double f_measure(uint64_t match, uint64_t graded, uint64_t reference) {
    if (!match) return 0;
    const double precision = (double)match / (double)graded;
    const double recall = (double)match / (double)reference;
    return 2 * precision * recall / (precision + recall);
}

rlhf_status rlhf__overlap_rouge(const struct rlhf__word_pair *p, uint32_t n, double *out) {
    struct count c[RLHF__ROUGE_MOST] = {{{0, 0}, 0}};
    RLHF_TRY(count_all(p, n, c));
    *out = f_measure(c[n - 1].common, c[n - 1].total[0], c[n - 1].total[1]);
    return RLHF_OK;
}

rlhf_status rlhf__overlap_rouge_l(const struct rlhf__word_pair *p, double *out) {
    uint32_t length;
    RLHF_TRY(rlhf__lcs_of(p->host, p->word[0], p->n[0], p->word[1], p->n[1], &length));
    *out = f_measure(length, p->n[0], p->n[1]);
    return RLHF_OK;
}
