// added.c: see added.h.
#include "text/added.h"

#include <stdlib.h>
#include <string.h>

// ---- finding many texts in one text ----

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

// All items in [*lo, *hi) agree in the bytes before offset `depth`. Narrows the range to the items
// whose byte at that offset is b.
static void narrow(const struct rlhf__matcher *m, size_t *lo, size_t *hi, size_t depth, uint8_t b) {
    for (int side = 0; side < 2; side++) { // the first item with a byte >= b, then > b
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

// The longest of the matcher's texts that s[0..n) begins with, or NULL.
static const struct rlhf__needle *longest(const struct rlhf__matcher *m, const uint8_t *s,
                                          size_t n) {
    size_t lo = m->first[s[0]], hi = m->first[s[0] + 1];
    const struct rlhf__needle *found = NULL;
    for (size_t depth = 1; lo < hi; depth++) {
        if (m->item[lo].len == depth) found = &m->item[lo++]; // shorter items come first
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
    rlhf__buf_finish(&m->bytes);
    free(m->item);
    *m = (struct rlhf__matcher){0};
}

// ---- the list ----

const char *rlhf__added_text(const struct rlhf__added *a, const struct rlhf__added_token *t) {
    return rlhf__buf_text(&a->text) + t->at;
}

static size_t probe(const struct rlhf__added *a, const char *s, size_t len) {
    size_t mask = a->n_slots - 1, i = (size_t)rlhf__vocab_hash_bytes(s, len) & mask;
    for (; a->slot[i] != UINT32_MAX; i = (i + 1) & mask) {
        const struct rlhf__added_token *t = &a->item[a->slot[i]];
        if (t->len == len && !memcmp(rlhf__added_text(a, t), s, len)) break;
    }
    return i;
}

struct rlhf__added_token *rlhf__added_find(const struct rlhf__added *a, const char *s, size_t len) {
    if (!a->n) return NULL;
    size_t i = probe(a, s, len);
    return a->slot[i] == UINT32_MAX ? NULL : &a->item[a->slot[i]];
}

static rlhf_status grow(struct rlhf__added *a, struct rlhf__error *err) {
    size_t cap = a->cap ? a->cap * 2 : 16, slots = cap * 2;
    struct rlhf__added_token *item = realloc(a->item, cap * sizeof *item);
    if (item) a->item = item;
    uint32_t *slot = item ? realloc(a->slot, slots * sizeof *slot) : NULL;
    if (!slot) return RLHF__NOMEM(err, "out of memory for the added tokens");
    a->slot = slot;
    a->cap = cap;
    a->n_slots = slots;
    memset(slot, 0xFF, slots * sizeof *slot);
    for (size_t i = 0; i < a->n; i++)
        slot[probe(a, rlhf__added_text(a, &item[i]), item[i].len)] = (uint32_t)i;
    return RLHF_OK;
}

rlhf_status rlhf__added_append(struct rlhf__added *a, const char *s, size_t len,
                               const struct rlhf__added_token *token, struct rlhf__error *err) {
    if (len > UINT32_MAX - a->text.len)
        return rlhf__fail(err, RLHF_E_INVALID, "the added tokens are larger than 4 GiB");
    if (a->n == a->cap) RLHF_TRY(grow(a, err));
    struct rlhf__added_token *t = &a->item[a->n];
    *t = *token;
    t->at = (uint32_t)a->text.len;
    t->len = (uint32_t)len;
    rlhf__buf_put(&a->text, s, len);
    RLHF_TRY(rlhf__buf_ok(&a->text, err));
    a->slot[probe(a, s, len)] = (uint32_t)a->n++;
    if (t->id > a->largest) a->largest = t->id;
    return RLHF_OK;
}

static int next_of(const struct rlhf__added *added, const struct rlhf__matcher *m, rlhf_str s,
                   size_t from, size_t *at) {
    struct rlhf__match found;
    while (rlhf__matcher_next(m, s.ptr, (size_t)s.len, from, &found)) {
        *at = found.begin;
        if (added->item[found.value].special) return 1;
        from = found.begin + 1;
    }
    return 0;
}

int rlhf__added_next_special(const struct rlhf__added *added, rlhf_str text, size_t from,
                             size_t *at) {
    size_t a = 0, b = 0;
    const int plain = next_of(added, &added->plain, text, from, &a),
              normal = next_of(added, &added->normal, text, from, &b);
    *at = plain && (!normal || a < b) ? a : b;
    return plain || normal;
}

size_t rlhf__added_special_at(const struct rlhf__added *added, rlhf_str s) {
    const struct rlhf__matcher *all[] = {&added->plain, &added->normal};
    struct rlhf__match found;
    for (size_t i = 0; i < 2; i++)
        if (rlhf__matcher_next(all[i], s.ptr, (size_t)s.len, 0, &found) && found.begin == 0 &&
            added->item[found.value].special)
            return found.end;
    return 0;
}

void rlhf__added_finish(struct rlhf__added *a) {
    rlhf__buf_finish(&a->text);
    rlhf__matcher_finish(&a->plain);
    rlhf__matcher_finish(&a->normal);
    free(a->item);
    free(a->slot);
    *a = (struct rlhf__added){0};
}

rlhf_str rlhf__added_content(const struct rlhf__added *a, int32_t id) {
    for (size_t i = 0; i < a->n; i++)
        if (a->item[i].id == id)
            return (rlhf_str){rlhf__added_text(a, &a->item[i]), a->item[i].len};
    return (rlhf_str){NULL, 0};
}

rlhf_str rlhf__added_shown(const struct rlhf__added *a, const struct rlhf__vocab *vocab,
                           int32_t id) {
    rlhf_str b = rlhf__vocab_bytes(vocab, id);
    for (size_t i = 0; b.ptr && vocab->token[id].shown && i < a->n; i++)
        if (a->item[i].id == id)
            return (rlhf_str){rlhf__buf_text(&a->text) + a->item[i].shown_at, a->item[i].shown_len};
    return b;
}
