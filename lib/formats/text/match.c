// match.c: see match.h. The texts lie sorted, so those that agree with what has been read are a
// range of them; each further byte narrows it.
#include "text/match.h"

#include <stdlib.h>
#include <string.h>

rlhf_status rlhf__matcher_add(struct rlhf__matcher *m, const char *s, size_t len, uint32_t value,
                              struct rlhf__error *err) {
    if (!len) return RLHF_OK;
    if (len > UINT32_MAX - m->bytes.len || m->n == UINT32_MAX)
        return rlhf__fail(err, RLHF_E_INVALID, "the added tokens are larger than 4 GiB");
    if (m->n == m->cap) {
        size_t cap = m->cap ? m->cap * 2 : 16;
        struct rlhf__needle *item = realloc(m->item, cap * sizeof *item);
        if (!item) return RLHF__NOMEM(err, "out of memory for the added tokens");
        m->item = item;
        m->cap = cap;
    }
    m->item[m->n] = (struct rlhf__needle){.at = (uint32_t)m->bytes.len,
                                          .len = (uint32_t)len,
                                          .value = value,
                                          .order = (uint32_t)m->n};
    m->n++;
    rlhf__buf_put(&m->bytes, s, len);
    return rlhf__buf_ok(&m->bytes, err);
}

static const uint8_t *bytes_of(const struct rlhf__matcher *m, const struct rlhf__needle *x) {
    return (const uint8_t *)m->bytes.data + x->at;
}

static int by_bytes(const void *a, const void *b, void *m) {
    const struct rlhf__needle *x = a, *y = b;
    int order = memcmp(bytes_of(m, x), bytes_of(m, y), x->len < y->len ? x->len : y->len);
    if (order) return order;
    if (x->len != y->len) return x->len < y->len ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

void rlhf__matcher_sort(struct rlhf__matcher *m) {
    if (m->n) qsort_r(m->item, m->n, sizeof *m->item, by_bytes, m);
    size_t kept = 0;
    for (size_t i = 0; i < m->n; i++) {
        const struct rlhf__needle *x = &m->item[i], *last = &m->item[kept ? kept - 1 : 0];
        if (kept && last->len == x->len && !memcmp(bytes_of(m, last), bytes_of(m, x), x->len))
            continue;
        m->item[kept++] = *x;
    }
    m->n = kept;
    size_t i = 0;
    for (unsigned b = 0; b <= 256; b++) {
        while (i < m->n && *bytes_of(m, &m->item[i]) < b)
            i++;
        m->first[b] = (uint32_t)i;
    }
}

// Narrow item[*lo..*hi), which agree before `depth`, to those with byte b there.
static void narrow(const struct rlhf__matcher *m, size_t *lo, size_t *hi, size_t depth, uint8_t b) {
    for (int side = 0; side < 2; side++) { // the first with at least b, the first with more
        size_t from = *lo, to = *hi;
        while (from < to) {
            size_t mid = from + (to - from) / 2;
            if (bytes_of(m, &m->item[mid])[depth] < b + side)
                from = mid + 1;
            else
                to = mid;
        }
        *(side ? hi : lo) = from;
    }
}

// The longest text that s[0..n) begins with, NULL when there is none.
static const struct rlhf__needle *longest(const struct rlhf__matcher *m, const uint8_t *s,
                                          size_t n) {
    size_t lo = m->first[s[0]], hi = m->first[s[0] + 1];
    const struct rlhf__needle *found = NULL;
    for (size_t depth = 1; lo < hi; depth++) {
        if (m->item[lo].len == depth) found = &m->item[lo++]; // the shortest stands first
        if (lo == hi || depth == n) break;
        uint8_t a = bytes_of(m, &m->item[lo])[depth], z = bytes_of(m, &m->item[hi - 1])[depth];
        if (s[depth] < a || s[depth] > z) break;
        if (a != z) narrow(m, &lo, &hi, depth, s[depth]);
    }
    return found;
}

int rlhf__matcher_next(const struct rlhf__matcher *m, const char *s, size_t n, size_t from,
                       struct rlhf__match *out) {
    const uint8_t *bytes = (const uint8_t *)s;
    for (size_t at = from; m->n && at < n; at++) {
        if (m->first[bytes[at]] == m->first[bytes[at] + 1]) continue;
        const struct rlhf__needle *x = longest(m, bytes + at, n - at);
        if (!x) continue;
        *out = (struct rlhf__match){at, at + x->len, x->value};
        return 1;
    }
    return 0;
}

void rlhf__matcher_finish(struct rlhf__matcher *m) {
    rlhf__buf_free(&m->bytes);
    free(m->item);
    *m = (struct rlhf__matcher){0};
}
