// vocab.h: the tokens of a vocabulary: id to bytes and bytes to id.
//
// What it is not: it knows no merges and no special tokens; internal to text/.
#ifndef RLHF_HOST_TEXT_VOCAB_H
#define RLHF_HOST_TEXT_VOCAB_H

#include "base/error.h"

#define RLHF__VOCAB_MAX (1 << 22) // ids of a vocabulary file must be below this

struct rlhf__vocab_token {
    uint32_t at, len; // bytes of the token in `bytes`; len 0 with used 0 = no token has this id
    uint8_t used, special; // special: found only where special tokens are looked for
    uint8_t added;         // found in every text before it is cut into words
    uint8_t shown;         // decodes as something else, see added_tokens.h
};

// Zero-initialise; release with rlhf__vocab_finish.
struct rlhf__vocab {
    struct rlhf__vocab_token *token; // [n]
    char *bytes;
    int32_t *slot; // [n_slots] hash table of ids, -1 = empty; n_slots is a power of two
    size_t n_slots, bytes_len, bytes_cap;
    int32_t n, cap; // largest id + 1
    uint32_t longest, hashed;
};

// Give id the bytes s[0..len). Errors: RLHF_E_INVALID (id negative, too large or taken),
// RLHF_E_NOMEM. Messages say what, not where: the caller adds the file. [one thread]
rlhf_status rlhf__vocab_add(struct rlhf__vocab *v, int64_t id, const char *s, size_t len,
                            struct rlhf__error *err);

// Make room in the lookup table for n tokens. [one thread]
rlhf_status rlhf__vocab_index(struct rlhf__vocab *v, int32_t n, struct rlhf__error *err);

// Make token id findable; a later token with the same bytes replaces an earlier one. The table
// must have been made with rlhf__vocab_index for enough tokens. [one thread]
void rlhf__vocab_hash(struct rlhf__vocab *v, int32_t id);

// Id of the token with these bytes; -1 = none. [any, after building]
int32_t rlhf__vocab_find(const struct rlhf__vocab *v, const char *s, size_t len);

// Bytes of a token; {NULL, 0} when id is not in the vocabulary. Borrowed. [any]
rlhf_str rlhf__vocab_bytes(const struct rlhf__vocab *v, int32_t id);

void rlhf__vocab_finish(struct rlhf__vocab *v);

// 64-bit hash of a byte string. [any]
uint64_t rlhf__vocab_hash_bytes(const char *s, size_t len);

#endif
