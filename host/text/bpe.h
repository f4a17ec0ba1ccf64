// bpe.h: byte-level BPE: the bytes of each word are merged into tokens.
//
// What it is not: it reads no files, cuts no words and knows no special tokens; internal to text/.
#ifndef RLHF_HOST_TEXT_BPE_H
#define RLHF_HOST_TEXT_BPE_H

#include "text/bpe_merge.h"
#include "text/vocab.h"

// GPT-2's printable stand-in of each byte, used in vocab.json and merges.txt: bytes that print as
// themselves keep their code point, the others get U+0100 and up in order. [any]
void rlhf__bpe_byte_chars(uint16_t chars[256]);

// Translate a token as written in the files (stand-ins, UTF-8) to its bytes in out[len]; returns
// how many, or SIZE_MAX when a character is no stand-in. [any]
size_t rlhf__bpe_token_bytes(const char *s, size_t len, char *out);

struct rlhf__bpe; // opaque

// vocab (borrowed, must outlive it) holds the tokens' bytes, all hashed; *merges is taken over.
// Errors: RLHF_E_INVALID (a byte without a token), RLHF_E_NOMEM. [main]
rlhf_status rlhf__bpe_create(const struct rlhf__vocab *vocab, struct rlhf__merges *merges,
                             struct rlhf__bpe **out, struct rlhf__error *err);

void rlhf__bpe_destroy(struct rlhf__bpe *bpe); // NULL allowed

// Append the ids of the word s[0..n), any bytes. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__bpe_encode(const struct rlhf__bpe *bpe, const char *s, size_t n,
                             struct rlhf__ids *out, struct rlhf__error *err);

#endif
