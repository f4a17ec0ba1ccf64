// bpe.h: byte-pair encoding (BPE): merges the bytes or characters of each word into tokens.
//
// This file does not read files, split texts into words, or handle special tokens. Internal to
// text/.
#ifndef RLHF_FORMATS_TEXT_BPE_H
#define RLHF_FORMATS_TEXT_BPE_H

#include "text/vocab.h"

// ---- merges ----

struct rlhf__merge {
    uint64_t pair; // left id << 32 | right id
    uint32_t rank;
    int32_t id; // the merged token; -1 = empty slot
};

// Zero-initialize; release with rlhf__merges_finish.
struct rlhf__merges {
    struct rlhf__merge *slot; // [n_slots] open addressing, n_slots a power of two
    size_t n_slots;
};

// Make room for n merges and drop earlier merges. Errors: RLHF_E_NOMEM. [one thread]
rlhf_status rlhf__merges_init(struct rlhf__merges *m, size_t n, struct rlhf__error *err);

// Add the merge `left` + `right` -> `id`. Merges with a lower rank are applied first. Do not add
// more merges than rlhf__merges_init made room for. [one thread]
void rlhf__merges_add(struct rlhf__merges *m, int32_t left, int32_t right, uint32_t rank,
                      int32_t id);

// 1 if `a` and `b` hold the same merges in the same order. [any]
int rlhf__merges_equal(const struct rlhf__merges *a, const struct rlhf__merges *b);

void rlhf__merges_finish(struct rlhf__merges *m);

// ---- the model ----

struct rlhf__bpe; // opaque

// The options of the model in its file. Flags are 0 or 1.
struct rlhf__bpe_opts {
    int32_t bytes;         // 1: the symbols of a word are its bytes; 0: its characters
    int32_t ignore_merges; // 1: a word that is a token becomes that token without merging
    int32_t byte_fallback; // 1: a symbol without a token becomes its UTF-8: <0x00> to <0xFF>
    int32_t fuse_unk;      // 1: adjacent symbols without a token become one unk
    int32_t unk;           // id of unk; -1 = symbols without a token are dropped
};

// Make a model. `vocab` has the tokens; it is borrowed and must outlive the model. The hash table
// of `vocab` must contain every token that a word may become. Takes ownership of *merges. Errors:
// RLHF_E_NOMEM. [main]
rlhf_status rlhf__bpe_open(const struct rlhf__bpe_opts *opts, const struct rlhf__vocab *vocab,
                           struct rlhf__merges *merges, struct rlhf__bpe **out,
                           struct rlhf__error *err);

void rlhf__bpe_close(struct rlhf__bpe *bpe); // NULL allowed

// Returns the end of the part that begins at `at` in the word s[0..n). The parts of a word can be
// encoded separately with the same result as the whole word. A part ends before each space
// character (U+2581) that no merge joins to the character before it. [any]
size_t rlhf__bpe_part_end(const struct rlhf__bpe *bpe, const char *s, size_t n, size_t at);

// Added to a byte in the `lost` of rlhf__bpe_encode; larger than any character.
#define RLHF__LOST_BYTE 0x110000

// Append the ids of the word s[0..n), which may contain any bytes. If a symbol lacks a token and
// became unk or nothing, set *lost to the last such symbol: a character, or RLHF__LOST_BYTE plus a
// byte. Otherwise *lost stays as it is. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__bpe_encode(const struct rlhf__bpe *bpe, const char *s, size_t n,
                             struct rlhf__ids *out, int64_t *lost, struct rlhf__error *err);

#endif
