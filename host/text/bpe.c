// bpe.c: see bpe.h. Most words of a text are one token: a table of the tokens that their own bytes
// merge into answers those with one lookup, the rest go through the merges.
#include "text/bpe.h"

#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

struct rlhf__bpe {
    const struct rlhf__vocab *vocab;
    struct rlhf__merges merges;
    struct rlhf__vocab words; // tokens that are what their own bytes merge into
    int32_t byte_id[256];
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

// Merge the bytes of one word behind out->n.
static rlhf_status encode_bytes(const struct rlhf__bpe *bpe, const char *s, size_t n,
                                struct rlhf__ids *out, struct rlhf__error *err) {
    RLHF_TRY(rlhf__ids_reserve(out, n, err));
    int32_t *ids = out->data + out->n;
    for (size_t i = 0; i < n; i++)
        ids[i] = bpe->byte_id[(uint8_t)s[i]];
    RLHF_TRY(rlhf__merges_apply(&bpe->merges, ids, &n, err));
    out->n += n;
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
        st = encode_bytes(bpe, b.ptr, (size_t)b.len, &ids, err);
        if (st < 0 || ids.n != 1 || ids.data[0] != id) continue;
        rlhf__vocab_hash(&bpe->words, id);
        if (b.len > bpe->words.longest) bpe->words.longest = (uint32_t)b.len;
    }
    rlhf__ids_finish(&ids);
    return st;
}

rlhf_status rlhf__bpe_create(const struct rlhf__vocab *vocab, struct rlhf__merges *merges,
                             struct rlhf__bpe **out, struct rlhf__error *err) {
    struct rlhf__bpe *bpe = calloc(1, sizeof *bpe);
    if (!bpe) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a tokenizer");
    bpe->vocab = vocab;
    bpe->merges = *merges;
    *merges = (struct rlhf__merges){0};
    rlhf_status st = RLHF_OK;
    for (int b = 0; b < 256 && st == RLHF_OK; b++) {
        char c = (char)b;
        bpe->byte_id[b] = rlhf__vocab_find(vocab, &c, 1);
        if (bpe->byte_id[b] < 0)
            st = rlhf__fail(err, RLHF_E_INVALID,
                            "no token for byte 0x%02x: this is no byte-level vocabulary", b);
    }
    if (st == RLHF_OK) st = find_words(bpe, err);
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
    int32_t id = rlhf__vocab_find(&bpe->words, s, n);
    return id >= 0 ? rlhf__ids_push(out, id, err) : encode_bytes(bpe, s, n, out, err);
}
