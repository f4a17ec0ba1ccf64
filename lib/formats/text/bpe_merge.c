// bpe_merge.c: see bpe_merge.h. Short words scan for the best pair; long ones use a heap of
// candidate pairs over a linked list, where a candidate whose symbols changed is dropped when met.
#include "text/bpe_merge.h"

#include <stdlib.h>
#include <string.h>

enum { SHORT_WORD = 32 };

static uint64_t pair_of(int32_t left, int32_t right) {
    return ((uint64_t)(uint32_t)left << 32) | (uint32_t)right;
}

// Slot that holds the pair, or the empty one where it belongs.
static struct rlhf__merge *probe(const struct rlhf__merges *m, uint64_t pair) {
    uint64_t h = (pair ^ (pair >> 31)) * 0xFF51AFD7ED558CCDu;
    size_t mask = m->n_slots - 1, i = (size_t)(h ^ (h >> 33)) & mask;
    while (m->slot[i].id >= 0 && m->slot[i].pair != pair)
        i = (i + 1) & mask;
    return &m->slot[i];
}

static const struct rlhf__merge *find(const struct rlhf__merges *m, int32_t left, int32_t right) {
    const struct rlhf__merge *slot = probe(m, pair_of(left, right));
    return slot->id < 0 ? NULL : slot;
}

rlhf_status rlhf__merges_init(struct rlhf__merges *m, size_t n, struct rlhf__error *err) {
    size_t slots = 16;
    while (slots < n * 2)
        slots *= 2;
    free(m->slot);
    m->slot = malloc(slots * sizeof *m->slot);
    m->n_slots = m->slot ? slots : 0;
    if (!m->slot) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for %zu merges", n);
    memset(m->slot, 0xFF, slots * sizeof *m->slot);
    return RLHF_OK;
}

void rlhf__merges_add(struct rlhf__merges *m, int32_t left, int32_t right, uint32_t rank,
                      int32_t id) {
    uint64_t pair = pair_of(left, right);
    *probe(m, pair) = (struct rlhf__merge){.pair = pair, .rank = rank, .id = id};
}

int rlhf__merges_equal(const struct rlhf__merges *a, const struct rlhf__merges *b) {
    size_t left = 0;
    for (size_t i = 0; i < b->n_slots; i++)
        left += b->slot[i].id >= 0;
    for (size_t i = 0; i < a->n_slots; i++) {
        const struct rlhf__merge *m = &a->slot[i];
        if (m->id < 0) continue;
        const struct rlhf__merge *other = b->n_slots ? probe(b, m->pair) : NULL;
        if (!other || other->id != m->id || other->rank != m->rank) return 0;
        left--;
    }
    return left == 0;
}

void rlhf__merges_finish(struct rlhf__merges *m) {
    free(m->slot);
    *m = (struct rlhf__merges){0};
}

// ids[0..n), n <= SHORT_WORD: the rank of each adjacent pair is kept beside it.
static size_t apply_short(const struct rlhf__merges *m, int32_t *ids, size_t n) {
    const struct rlhf__merge *pair[SHORT_WORD];
    for (size_t i = 0; i + 1 < n; i++)
        pair[i] = find(m, ids[i], ids[i + 1]);
    pair[n - 1] = NULL; // nothing follows the last
    for (;;) {
        const struct rlhf__merge *best = NULL;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            if (pair[i] && (!best || pair[i]->rank < best->rank)) {
                best = pair[i];
                at = i;
            }
        }
        if (!best) return n;
        ids[at] = best->id;
        for (size_t i = at + 1; i + 1 < n; i++) {
            ids[i] = ids[i + 1];
            pair[i] = pair[i + 1];
        }
        n--;
        if (at > 0) pair[at - 1] = find(m, ids[at - 1], ids[at]);
        pair[at] = at + 1 < n ? find(m, ids[at], ids[at + 1]) : NULL;
    }
}

// ---- long words
// ----------------------------------------------------------------------------------

struct candidate {
    uint32_t rank;
    int32_t id;
    size_t at; // left symbol
};

struct symbol {
    size_t prev, next; // SIZE_MAX = none
    int32_t id;        // -1 = merged away
    int32_t reserved;
};

struct heap {
    struct candidate *item;
    size_t n;
};

static int before(const struct candidate *a, const struct candidate *b) {
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

// Every symbol pair is pushed at most once when it appears: n - 1 at first, at most 2 a merge, so
// 3n items are enough.
static void heap_push(struct heap *h, struct candidate c) {
    size_t i = h->n++;
    while (i > 0 && before(&c, &h->item[(i - 1) / 2])) {
        h->item[i] = h->item[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h->item[i] = c;
}

static struct candidate heap_pop(struct heap *h) {
    struct candidate top = h->item[0], last = h->item[--h->n];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= h->n) break;
        if (child + 1 < h->n && before(&h->item[child + 1], &h->item[child])) child++;
        if (!before(&h->item[child], &last)) break;
        h->item[i] = h->item[child];
        i = child;
    }
    h->item[i] = last;
    return top;
}

static void push_pair(const struct rlhf__merges *m, struct heap *h, const struct symbol *s,
                      size_t at) {
    if (at == SIZE_MAX || s[at].next == SIZE_MAX) return;
    const struct rlhf__merge *found = find(m, s[at].id, s[s[at].next].id);
    if (found) heap_push(h, (struct candidate){found->rank, found->id, at});
}

static void merge_all(const struct rlhf__merges *m, struct heap *h, struct symbol *s) {
    while (h->n) {
        struct candidate c = heap_pop(h);
        struct symbol *left = &s[c.at];
        if (left->id < 0 || left->next == SIZE_MAX) continue;
        struct symbol *right = &s[left->next];
        const struct rlhf__merge *now = find(m, left->id, right->id);
        if (!now || now->id != c.id) continue;
        left->id = c.id;
        left->next = right->next;
        right->id = -1;
        if (left->next != SIZE_MAX) s[left->next].prev = c.at;
        push_pair(m, h, s, left->prev);
        push_pair(m, h, s, c.at);
    }
}

static rlhf_status apply_long(const struct rlhf__merges *m, int32_t *ids, size_t *n,
                              struct rlhf__error *err) {
    struct symbol *s = NULL;
    struct heap h = {0};
    if (*n < SIZE_MAX / 3 / sizeof *h.item) {
        s = malloc(*n * sizeof *s);
        h.item = malloc(*n * 3 * sizeof *h.item);
    }
    if (!s || !h.item) {
        free(s);
        free(h.item);
        return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a word of %zu bytes", *n);
    }
    for (size_t i = 0; i < *n; i++)
        s[i] = (struct symbol){i ? i - 1 : SIZE_MAX, i + 1 < *n ? i + 1 : SIZE_MAX, ids[i], 0};
    for (size_t i = 0; i < *n; i++)
        push_pair(m, &h, s, i);
    merge_all(m, &h, s);
    size_t out = 0;
    for (size_t i = 0; i != SIZE_MAX; i = s[i].next)
        ids[out++] = s[i].id;
    *n = out;
    free(s);
    free(h.item);
    return RLHF_OK;
}

rlhf_status rlhf__merges_apply(const struct rlhf__merges *m, int32_t *ids, size_t *n,
                               struct rlhf__error *err) {
    if (*n < 2 || !m->n_slots) return RLHF_OK;
    if (*n > SHORT_WORD) return apply_long(m, ids, n, err);
    *n = apply_short(m, ids, *n);
    return RLHF_OK;
}
