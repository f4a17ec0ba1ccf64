// vocab.h: the tokens of a vocabulary (from id to bytes and from bytes to id), and lists of ids.
//
// This file does not handle merges, special tokens or batches of rows (data/token_rows.h).
#ifndef RLHF_FORMATS_TEXT_VOCAB_H
#define RLHF_FORMATS_TEXT_VOCAB_H

#include "base/error.h"

// ---- lists of ids ----

// Zero-initialize; release with rlhf__ids_finish. data[0..n) are valid.
struct rlhf__ids {
    int32_t *data;
    size_t n, cap;
};

// Make room for `more` additional ids. Errors: RLHF_E_NOMEM. [any, one thread per array]
rlhf_status rlhf__ids_reserve(struct rlhf__ids *ids, size_t more, struct rlhf__error *err);

// Append one id. Errors: RLHF_E_NOMEM. [any, one thread per array]
rlhf_status rlhf__ids_push(struct rlhf__ids *ids, int32_t id, struct rlhf__error *err);

// Free the memory and make the array empty; accepts an empty array. [any]
void rlhf__ids_finish(struct rlhf__ids *ids);

// ---- vocabularies ----

#define RLHF__VOCAB_MAX (1 << 22) // ids of a vocabulary file must be below this

struct rlhf__vocab_token {
    uint32_t at, len; // position and length in `bytes`; if len and used are 0, the id is unused
    uint8_t used, special; // `special` 1: found only in a search for special tokens
    uint8_t added;         // 1: found in every text, before the text is split into words
    uint8_t shown;         // 1: decodes as another text, see added.h
};

// Zero-initialize; release with rlhf__vocab_finish.
struct rlhf__vocab {
    struct rlhf__vocab_token *token; // [n]
    char *bytes;
    int32_t *slot; // [n_slots] hash table of ids, -1 = empty; n_slots is a power of two
    size_t n_slots, bytes_len, bytes_cap;
    int32_t n, cap; // largest id + 1
    uint32_t longest, hashed;
};

// Give token `id` the bytes s[0..len). Errors: RLHF_E_INVALID (`id` is negative, too large or
// already used), RLHF_E_NOMEM. The caller adds the file's name to the message. [one thread]
rlhf_status rlhf__vocab_add(struct rlhf__vocab *v, int64_t id, const char *s, size_t len,
                            struct rlhf__error *err);

// Make room in the lookup table for n tokens. [one thread]
rlhf_status rlhf__vocab_index(struct rlhf__vocab *v, int32_t n, struct rlhf__error *err);

// Add a token to the lookup table. If two tokens have the same bytes, the later one is found.
// rlhf__vocab_index must have made room for all tokens. [one thread]
void rlhf__vocab_hash(struct rlhf__vocab *v, int32_t id);

// Id of the token with these bytes; -1 = none. [any, after building]
int32_t rlhf__vocab_find(const struct rlhf__vocab *v, const char *s, size_t len);

// The bytes of a token; {NULL, 0} if the id is not in the vocabulary. Borrowed. [any]
rlhf_str rlhf__vocab_bytes(const struct rlhf__vocab *v, int32_t id);

void rlhf__vocab_finish(struct rlhf__vocab *v);

// 64-bit hash of a byte string. [any]
uint64_t rlhf__vocab_hash_bytes(const char *s, size_t len);

// ---- how the files write bytes ----

// Fills `chars` with GPT-2's stand-ins: the printable characters that represent the bytes in
// vocab.json and merges.txt. A byte that is a printable character keeps its code point. The other
// bytes get the code points from U+0100 onward, in order. [any]
void rlhf__bpe_byte_chars(uint16_t chars[256]);

// Convert a token as the files write it (stand-ins, in UTF-8) to the bytes that it represents, and
// store them in `out`, which has room for `len` bytes. Returns the number of bytes, or SIZE_MAX if
// a character is not a stand-in. [any]
size_t rlhf__bpe_token_bytes(const char *s, size_t len, char *out);

#endif
