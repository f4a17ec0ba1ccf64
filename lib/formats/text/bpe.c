// bpe.c: see bpe.h. Most words of a text are one token: a table of the tokens that their own bytes
// merge into answers those with one lookup, the rest go through the merges.
#include "text/bpe.h"

#include "text/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rlhf__bpe {
    struct rlhf__bpe_opts opts;
    const struct rlhf__vocab *vocab;
    struct rlhf__merges merges;
    struct rlhf__vocab words; // tokens that are what their own bytes merge into
    uint8_t cuts[256];        // a part ends at this byte where a space character follows
    int32_t byte_id[256];     // of a byte, or of <0xHH>; -1 = none
};

void rlhf__bpe_byte_chars(uint16_t chars[256]) {
    uint16_t next = 0x100;
    for (unsigned b = 0; b < 256; b++) {
        int printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
        chars[b] = printable ? (uint16_t)b : next++;
    }
}

// The byte a stand-in character is for, -1 = none. The inverse of rlhf__bpe_byte_chars.
static int byte_of(uint32_t cp) {
    if ((cp >= '!' && cp <= '~') || (cp >= 0xA1 && cp <= 0xAC) || (cp >= 0xAE && cp <= 0xFF))
        return (int)cp;
    if (cp < 0x100 || cp >= 0x100 + 68) return -1;
    uint32_t k = cp - 0x100; // the k-th byte without a printable form
    if (k <= 0x20) return (int)k;
    return k <= 0x42 ? (int)(k - 0x21 + 0x7F) : 0xAD;
}

size_t rlhf__bpe_token_bytes(const char *s, size_t len, char *out) {
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        uint32_t cp = 0;
        size_t step = rlhf__utf8_next(s + i, len - i, &cp, NULL);
        int b = step ? byte_of(cp) : -1;
        if (b < 0) return SIZE_MAX;
        out[n++] = (char)b;
        i += step;
    }
    return n;
}

// The symbols of one word, before any merge.
struct symbols {
    const struct rlhf__bpe *bpe;
    struct rlhf__ids *out;
    int waits; // an unk that more may be fused into
};

static rlhf_status end_unk(struct symbols *to, struct rlhf__error *err) {
    int waits = to->waits;
    to->waits = 0;
    return waits ? rlhf__ids_push(to->out, to->bpe->opts.unk, err) : RLHF_OK;
}

// Whether all of these bytes have a token.
static int have_tokens(const struct rlhf__bpe *bpe, const char *s, size_t n) {
    int have = bpe->opts.byte_fallback;
    for (size_t i = 0; i < n && have; i++)
        have = bpe->byte_id[(uint8_t)s[i]] >= 0;
    return have;
}

// A character that is no token. An unk that waits stays behind the bytes that follow it, as in the
// tokenizers library.
static rlhf_status put_unknown(struct symbols *to, const char *s, size_t n,
                               struct rlhf__error *err) {
    const struct rlhf__bpe *bpe = to->bpe;
    if (have_tokens(bpe, s, n)) {
        for (size_t i = 0; i < n; i++)
            RLHF_TRY(rlhf__ids_push(to->out, bpe->byte_id[(uint8_t)s[i]], err));
        return RLHF_OK;
    }
    if (bpe->opts.unk < 0) return RLHF_OK;
    if (to->waits && !bpe->opts.fuse_unk) RLHF_TRY(end_unk(to, err));
    to->waits = 1;
    return RLHF_OK;
}

static rlhf_status put_characters(const struct rlhf__bpe *bpe, const char *s, size_t n,
                                  struct rlhf__ids *out, struct rlhf__error *err) {
    struct symbols to = {.bpe = bpe, .out = out};
    for (size_t at = 0, len; at < n; at += len) {
        size_t bad = 1;
        len = rlhf__utf8_next(s + at, n - at, NULL, &bad);
        int32_t id = len ? rlhf__vocab_find(bpe->vocab, s + at, len) : -1;
        if (!len) len = bad;
        if (id < 0) {
            RLHF_TRY(put_unknown(&to, s + at, len, err));
        } else {
            RLHF_TRY(end_unk(&to, err));
            RLHF_TRY(rlhf__ids_push(out, id, err));
        }
    }
    return end_unk(&to, err);
}

static rlhf_status put_bytes(const struct rlhf__bpe *bpe, const char *s, size_t n,
                             struct rlhf__ids *out, struct rlhf__error *err) {
    RLHF_TRY(rlhf__ids_reserve(out, n, err));
    for (size_t i = 0; i < n; i++)
        out->data[out->n++] = bpe->byte_id[(uint8_t)s[i]];
    return RLHF_OK;
}

// Merge the symbols of one word behind out->n.
static rlhf_status merge_word(const struct rlhf__bpe *bpe, const char *s, size_t n,
                              struct rlhf__ids *out, struct rlhf__error *err) {
    size_t from = out->n;
    RLHF_TRY(bpe->opts.bytes ? put_bytes(bpe, s, n, out, err)
                             : put_characters(bpe, s, n, out, err));
    size_t left = out->n - from;
    RLHF_TRY(rlhf__merges_apply(&bpe->merges, out->data + from, &left, err));
    out->n = from + left;
    return RLHF_OK;
}

// Fill `words`: the tokens that merging their own bytes gives back.
static rlhf_status find_words(struct rlhf__bpe *bpe, struct rlhf__error *err) {
    const struct rlhf__vocab *v = bpe->vocab;
    RLHF_TRY(rlhf__vocab_index(&bpe->words, v->n, err));
    bpe->words.token = v->token; // shares the tokens, owns only its slots
    bpe->words.bytes = v->bytes;
    bpe->words.n = v->n;
    struct rlhf__ids ids = {0};
    rlhf_status st = RLHF_OK;
    for (int32_t id = 0; id < v->n && st == RLHF_OK; id++) {
        rlhf_str b = rlhf__vocab_bytes(v, id);
        if (!b.len) continue;
        ids.n = 0;
        st = merge_word(bpe, b.ptr, (size_t)b.len, &ids, err);
        if (st < 0 || ids.n != 1 || ids.data[0] != id) continue;
        rlhf__vocab_hash(&bpe->words, id);
        if (b.len > bpe->words.longest) bpe->words.longest = (uint32_t)b.len;
    }
    rlhf__ids_finish(&ids);
    return st;
}

static const char space[] = "\xE2\x96\x81"; // U+2581
enum { SPACE_LEN = 3 };

// Fill `cuts`: all but the last bytes of what some merge joins to a space character. Where that may
// be an unknown character or a byte, its text does not say what it ends with.
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

static rlhf_status find_bytes(struct rlhf__bpe *bpe, struct rlhf__error *err) {
    for (int b = 0; b < 256; b++) {
        char c = (char)b, name[8];
        snprintf(name, sizeof name, "<0x%02X>", b);
        bpe->byte_id[b] = bpe->opts.bytes ? rlhf__vocab_find(bpe->vocab, &c, 1)
                                          : rlhf__vocab_find(bpe->vocab, name, 6);
        if (bpe->byte_id[b] < 0 && bpe->opts.bytes)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "no token for byte 0x%02x: this is no byte-level vocabulary", b);
    }
    return RLHF_OK;
}

rlhf_status rlhf__bpe_create(const struct rlhf__bpe_opts *opts, const struct rlhf__vocab *vocab,
                             struct rlhf__merges *merges, struct rlhf__bpe **out,
                             struct rlhf__error *err) {
    struct rlhf__bpe *bpe = calloc(1, sizeof *bpe);
    if (!bpe) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a tokenizer");
    bpe->opts = *opts;
    bpe->vocab = vocab;
    bpe->merges = *merges;
    *merges = (struct rlhf__merges){0};
    rlhf_status st = find_bytes(bpe, err);
    if (st == RLHF_OK && !opts->ignore_merges) st = find_words(bpe, err);
    find_cuts(bpe);
    if (st < 0) {
        rlhf__bpe_destroy(bpe);
        return st;
    }
    *out = bpe;
    return RLHF_OK;
}

void rlhf__bpe_destroy(struct rlhf__bpe *bpe) {
    if (!bpe) return;
    rlhf__merges_finish(&bpe->merges);
    free(bpe->words.slot);
    free(bpe);
}

rlhf_status rlhf__bpe_encode(const struct rlhf__bpe *bpe, const char *s, size_t n,
                             struct rlhf__ids *out, struct rlhf__error *err) {
    const struct rlhf__vocab *words = bpe->opts.ignore_merges ? bpe->vocab : &bpe->words;
    int32_t id = rlhf__vocab_find(words, s, n);
    return id >= 0 ? rlhf__ids_push(out, id, err) : merge_word(bpe, s, n, out, err);
}
