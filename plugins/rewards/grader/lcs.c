// lcs.c: see lcs.h.
#include "grader/lcs.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int32_t find(const struct rlhf__lcs *l, uint32_t symbol) {
    uint32_t lo = 0, hi = l->n_symbols;
    while (lo < hi) {
        const uint32_t mid = (lo + hi) / 2;
        if (l->symbol[mid] < symbol)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < l->n_symbols && l->symbol[lo] == symbol ? (int32_t)lo : -1;
}

rlhf_status rlhf__lcs_init(struct rlhf__lcs *l, const rlhf_host *host, const uint32_t *pattern,
                           uint32_t n) {
    *l = (struct rlhf__lcs){.host = host, .n = n, .words = (n + 63) / 64};
    l->symbol = host->alloc(host, ((uint64_t)n + 1) * sizeof *l->symbol);
    l->state = host->alloc(host, ((uint64_t)l->words + 1) * sizeof *l->state);
    if (!l->symbol || !l->state) return (host->fail)(host, RLHF_E_NOMEM, "out of memory");
    if (n) memcpy(l->symbol, pattern, n * sizeof *pattern);
    qsort(l->symbol, n, sizeof *l->symbol, compare);
    for (uint32_t i = 0; i < n; i++)
        if (!i || l->symbol[i] != l->symbol[l->n_symbols - 1])
            l->symbol[l->n_symbols++] = l->symbol[i];
    const uint64_t cells = (uint64_t)l->n_symbols * l->words;
    l->mask = host->alloc(host, (cells + 1) * sizeof *l->mask);
    if (!l->mask) return (host->fail)(host, RLHF_E_NOMEM, "out of memory");
    for (uint32_t i = 0; i < n; i++)
        l->mask[(uint64_t)find(l, pattern[i]) * l->words + i / 64] |= (uint64_t)1 << (i % 64);
    return RLHF_OK;
}

void rlhf__lcs_finish(struct rlhf__lcs *l) {
    l->host->free(l->host, l->symbol);
    l->host->free(l->host, l->mask);
    l->host->free(l->host, l->state);
    *l = (struct rlhf__lcs){0};
}

void rlhf__lcs_rows(const struct rlhf__lcs *l, const uint32_t *text, uint32_t n, int32_t *row) {
    for (uint32_t i = 0; i < n; i++)
        row[i] = find(l, text[i]);
}

// A bit of the state is 0 where the length grows from one symbol of the pattern to the next.
uint32_t rlhf__lcs_length(struct rlhf__lcs *l, const int32_t *row, uint32_t n) {
    uint32_t length = 0;
    memset(l->state, 0xff, l->words * sizeof *l->state);
    for (uint32_t i = 0; i < n; i++) {
        if (row[i] < 0) continue;
        const uint64_t *mask = l->mask + (uint64_t)row[i] * l->words;
        uint64_t carry = 0;
        for (uint32_t w = 0; w < l->words; w++) {
            const uint64_t s = l->state[w], u = s & mask[w], sum = s + u, x = sum + carry;
            carry = (sum < s) | (x < sum);
            l->state[w] = x | (s - u);
        }
    }
    for (uint32_t w = 0; w < l->words; w++) {
        const uint32_t left = l->n - w * 64;
        uint64_t zeros = ~l->state[w];
        if (left < 64) zeros &= ((uint64_t)1 << left) - 1;
        for (; zeros; zeros &= zeros - 1)
            length++;
    }
    return length;
}

rlhf_status rlhf__lcs_of(const rlhf_host *host, const uint32_t *a, uint32_t n_a, const uint32_t *b,
                         uint32_t n_b, uint32_t *length) {
    struct rlhf__lcs l;
    int32_t *row = NULL;
    *length = 0;
    rlhf_status st = rlhf__lcs_init(&l, host, a, n_a);
    if (st == RLHF_OK) {
        row = host->alloc(host, ((uint64_t)n_b + 1) * sizeof *row);
        if (!row) {
            st = (host->fail)(host, RLHF_E_NOMEM, "out of memory");
        } else {
            rlhf__lcs_rows(&l, b, n_b, row);
            *length = rlhf__lcs_length(&l, row, n_b);
        }
    }
    host->free(host, row);
    rlhf__lcs_finish(&l);
    return st;
}
