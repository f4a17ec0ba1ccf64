// bpe.c: see bpe.h. Most words of a text become a single token. A table has every token that BPE
// makes from the token's own bytes, so one lookup finds the token of such a word. Only the other
// words are merged.
#include "text/bpe.h"

#include "text/unicode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- merges ----
//
// In a short word, each step scans all pairs for the best one. In a long word, candidate pairs are
// in a heap, and the symbols are in a linked list. A candidate taken from the heap is dropped if
// its symbols have changed since it was added.

enum { SHORT_WORD = 32 };

static uint64_t pair_of(int32_t left, int32_t right) {
    return ((uint64_t)(uint32_t)left << 32) | (uint32_t)right;
}

// The slot that holds the pair, or the empty slot where it belongs.
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

// Merges ids[0..n), n <= SHORT_WORD. pair[i] is the merge of ids[i] and the id after it.
static size_t apply_short(const struct rlhf__merges *m, int32_t *ids, size_t n) {
    const struct rlhf__merge *pair[SHORT_WORD];
    for (size_t i = 0; i + 1 < n; i++)
        pair[i] = find(m, ids[i], ids[i + 1]);
    pair[n - 1] = NULL; // the last id has no right neighbor
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

// ---- long words ----

struct candidate {
    uint32_t rank;
    int32_t id;
    size_t at; // left symbol
};

struct symbol {
    size_t prev, next; // SIZE_MAX = none
    int32_t id;        // -1 = merged into its left neighbor
};

struct heap {
    struct candidate *item;
    size_t n;
};

static int before(const struct candidate *a, const struct candidate *b) {
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

// Every pair of symbols is pushed once, when it appears: n - 1 pairs at the beginning, and at most
// 2 after each merge. So room for 3n items is enough.
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
        s[i] = (struct symbol){i ? i - 1 : SIZE_MAX, i + 1 < *n ? i + 1 : SIZE_MAX, ids[i]};
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

// Merges ids[0..n) in place. Each step merges the pair of lowest rank. If several pairs have that
// rank, the leftmost pair is merged. Sets *n to the number of ids that remain. A long word takes n
// log n steps. Errors: RLHF_E_NOMEM.
static rlhf_status merges_apply(const struct rlhf__merges *m, int32_t *ids, size_t *n,
                                struct rlhf__error *err) {
    if (*n < 2 || !m->n_slots) return RLHF_OK;
    if (*n > SHORT_WORD) return apply_long(m, ids, n, err);
    *n = apply_short(m, ids, *n);
    return RLHF_OK;
}

// ---- words ----

struct rlhf__bpe {
    struct rlhf__bpe_opts opts;
    const struct rlhf__vocab *vocab;
    struct rlhf__merges merges;
    struct rlhf__vocab words; // the tokens that BPE makes from their own bytes
    uint8_t cuts[256];    // 1: a part of a word ends after this byte if a space character follows
    int32_t symbol[256];  // with `bytes`: the token of each byte; -1 = none
    int32_t byte_id[256]; // <0x00> to <0xFF>; -1 = none
    uint16_t chars[256];  // GPT-2's stand-ins for bytes
};

// The symbols of one word, before any merge.
struct symbols {
    const struct rlhf__bpe *bpe;
    struct rlhf__ids *out;
    int64_t *lost;
    int waits; // 1: an unk is pending, because the next unk may be fused into it
};

static rlhf_status end_unk(struct symbols *to, struct rlhf__error *err) {
    int waits = to->waits;
    to->waits = 0;
    return waits ? rlhf__ids_push(to->out, to->bpe->opts.unk, err) : RLHF_OK;
}

// 1 if byte_fallback is set and each of these bytes has a token.
static int have_tokens(const struct rlhf__bpe *bpe, const char *s, size_t n) {
    int have = bpe->opts.byte_fallback;
    for (size_t i = 0; i < n && have; i++)
        have = bpe->byte_id[(uint8_t)s[i]] >= 0;
    return have;
}

// Adds a character that has no token, as its bytes or as unk. An unk is not written at once, but
// before the next character that has a token, or at the end of the word. Without fuse_unk, the next
// unk also causes it to be written. If characters that are written as bytes follow the unk, their
// byte tokens come before it, as in the tokenizers library. `code` is the character or byte.
static rlhf_status put_unknown(struct symbols *to, const char *s, size_t n, int64_t code,
                               struct rlhf__error *err) {
    const struct rlhf__bpe *bpe = to->bpe;
    if (have_tokens(bpe, s, n)) {
        for (size_t i = 0; i < n; i++)
            RLHF_TRY(rlhf__ids_push(to->out, bpe->byte_id[(uint8_t)s[i]], err));
        return RLHF_OK;
    }
    *to->lost = code;
    if (bpe->opts.unk < 0) return RLHF_OK;
    if (to->waits && !bpe->opts.fuse_unk) RLHF_TRY(end_unk(to, err));
    to->waits = 1;
    return RLHF_OK;
}

static rlhf_status put_characters(struct symbols *to, const char *s, size_t n,
                                  struct rlhf__error *err) {
    for (size_t at = 0, len; at < n; at += len) {
        size_t bad = 1;
        uint32_t cp = 0;
        len = rlhf__utf8_next(s + at, n - at, &cp, &bad);
        int32_t id = len ? rlhf__vocab_find(to->bpe->vocab, s + at, len) : -1;
        const int64_t code = len ? (int64_t)cp : RLHF__LOST_BYTE + (uint8_t)s[at];
        if (!len) len = bad;
        if (id < 0) {
            RLHF_TRY(put_unknown(to, s + at, len, code, err));
        } else {
            RLHF_TRY(end_unk(to, err));
            RLHF_TRY(rlhf__ids_push(to->out, id, err));
        }
    }
    return end_unk(to, err);
}

// The library sees the stand-in of a byte, so byte_fallback is about the stand-in's UTF-8.
static rlhf_status put_bytes(struct symbols *to, const char *s, size_t n, struct rlhf__error *err) {
    const struct rlhf__bpe *bpe = to->bpe;
    struct rlhf__ids *out = to->out;
    RLHF_TRY(rlhf__ids_reserve(out, n, err));
    for (size_t i = 0; i < n; i++) {
        const uint8_t b = (uint8_t)s[i];
        char c[4];
        if (bpe->symbol[b] < 0) {
            const size_t len = rlhf__utf8_put(bpe->chars[b], c);
            RLHF_TRY(put_unknown(to, c, len, RLHF__LOST_BYTE + b, err));
            continue;
        }
        if (to->waits) RLHF_TRY(end_unk(to, err));
        RLHF_TRY(rlhf__ids_push(out, bpe->symbol[b], err));
    }
    return end_unk(to, err);
}

// Merge the symbols of one word; append the result to `out`.
static rlhf_status merge_word(const struct rlhf__bpe *bpe, const char *s, size_t n,
                              struct rlhf__ids *out, int64_t *lost, struct rlhf__error *err) {
    struct symbols to = {.bpe = bpe, .out = out, .lost = lost};
    size_t from = out->n;
    RLHF_TRY(bpe->opts.bytes ? put_bytes(&to, s, n, err) : put_characters(&to, s, n, err));
    size_t left = out->n - from;
    RLHF_TRY(merges_apply(&bpe->merges, out->data + from, &left, err));
    out->n = from + left;
    return RLHF_OK;
}

// Fill `words` with the tokens that BPE makes from their own bytes.
static rlhf_status find_words(struct rlhf__bpe *bpe, struct rlhf__error *err) {
    const struct rlhf__vocab *v = bpe->vocab;
    RLHF_TRY(rlhf__vocab_index(&bpe->words, v->n, err));
    bpe->words.token = v->token; // `words` shares the tokens and owns only its slots
    bpe->words.bytes = v->bytes;
    bpe->words.n = v->n;
    struct rlhf__ids ids = {0};
    int64_t lost;
    rlhf_status st = RLHF_OK;
    for (int32_t id = 0; id < v->n && st == RLHF_OK; id++) {
        rlhf_str b = rlhf__vocab_bytes(v, id);
        if (!b.len) continue;
        ids.n = 0;
        st = merge_word(bpe, b.ptr, (size_t)b.len, &ids, &lost, err);
        if (st < 0 || ids.n != 1 || ids.data[0] != id) continue;
        rlhf__vocab_hash(&bpe->words, id);
        if (b.len > bpe->words.longest) bpe->words.longest = (uint32_t)b.len;
    }
    rlhf__ids_finish(&ids);
    return st;
}

static const char space[] = "\xE2\x96\x81"; // U+2581
enum { SPACE_LEN = 3 };

// Sets cuts[b] to 1 if a part of a word may end after the byte `b`, otherwise to 0. If a merge
// joins a symbol to a following space character, no part may end after that symbol. So cuts is 0
// for the symbol's last byte. If the symbol is unk or a byte token, its last byte is not known, so
// cuts is 0 for all bytes.
static void find_cuts(struct rlhf__bpe *bpe) {
    if (bpe->opts.bytes || bpe->opts.ignore_merges ||
        rlhf__vocab_find(bpe->vocab, space, SPACE_LEN) < 0)
        return;
    memset(bpe->cuts, 1, sizeof bpe->cuts);
    for (size_t i = 0; i < bpe->merges.n_slots; i++) {
        const struct rlhf__merge *m = &bpe->merges.slot[i];
        if (m->id < 0) continue;
        int32_t left_id = (int32_t)(m->pair >> 32);
        rlhf_str left = rlhf__vocab_bytes(bpe->vocab, left_id);
        rlhf_str right = rlhf__vocab_bytes(bpe->vocab, (int32_t)(m->pair & UINT32_MAX));
        if (right.len < SPACE_LEN || memcmp(right.ptr, space, SPACE_LEN) != 0) continue;
        int odd = left_id == bpe->opts.unk || !left.len;
        for (int b = 0; b < 256; b++)
            odd |= left_id == bpe->byte_id[b];
        if (odd)
            memset(bpe->cuts, 0, sizeof bpe->cuts);
        else
            bpe->cuts[(uint8_t)left.ptr[left.len - 1]] = 0;
        if (odd) return;
    }
}

size_t rlhf__bpe_part_end(const struct rlhf__bpe *bpe, const char *s, size_t n, size_t at) {
    if (bpe->opts.bytes || bpe->opts.ignore_merges) return n;
    for (size_t from = at + 1; from + SPACE_LEN <= n;) {
        const char *next = memchr(s + from, space[0], n - from);
        if (!next) return n;
        size_t i = (size_t)(next - s);
        if (n - i < SPACE_LEN) return n;
        if (memcmp(next, space, SPACE_LEN) == 0 && bpe->cuts[(uint8_t)s[i - 1]]) return i;
        from = i + 1;
    }
    return n;
}

static void find_bytes(struct rlhf__bpe *bpe) {
    rlhf__bpe_byte_chars(bpe->chars);
    for (int b = 0; b < 256; b++) {
        char c = (char)b, name[8];
        snprintf(name, sizeof name, "<0x%02X>", b);
        bpe->symbol[b] = bpe->opts.bytes ? rlhf__vocab_find(bpe->vocab, &c, 1) : -1;
        bpe->byte_id[b] = rlhf__vocab_find(bpe->vocab, name, 6);
    }
}

rlhf_status rlhf__bpe_open(const struct rlhf__bpe_opts *opts, const struct rlhf__vocab *vocab,
                           struct rlhf__merges *merges, struct rlhf__bpe **out,
                           struct rlhf__error *err) {
    struct rlhf__bpe *bpe = calloc(1, sizeof *bpe);
    if (!bpe) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a tokenizer");
    bpe->opts = *opts;
    bpe->vocab = vocab;
    bpe->merges = *merges;
    *merges = (struct rlhf__merges){0};
    find_bytes(bpe);
    rlhf_status st = opts->ignore_merges ? RLHF_OK : find_words(bpe, err);
    find_cuts(bpe);
    if (st < 0) {
        rlhf__bpe_close(bpe);
        return st;
    }
    *out = bpe;
    return RLHF_OK;
}

void rlhf__bpe_close(struct rlhf__bpe *bpe) {
    if (!bpe) return;
    rlhf__merges_finish(&bpe->merges);
    free(bpe->words.slot);
    free(bpe);
}

rlhf_status rlhf__bpe_encode(const struct rlhf__bpe *bpe, const char *s, size_t n,
                             struct rlhf__ids *out, int64_t *lost, struct rlhf__error *err) {
    const struct rlhf__vocab *words = bpe->opts.ignore_merges ? bpe->vocab : &bpe->words;
    int32_t id = rlhf__vocab_find(words, s, n);
    return id >= 0 ? rlhf__ids_push(out, id, err) : merge_word(bpe, s, n, out, lost, err);
}
