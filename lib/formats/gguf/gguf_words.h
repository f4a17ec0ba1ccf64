// gguf_words.h: the tokens of a GGUF file, with their types and roles.
#ifndef RLHF_FORMATS_GGUF_GGUF_WORDS_H
#define RLHF_FORMATS_GGUF_GGUF_WORDS_H

#include "gguf/gguf_pre.h"
#include "tensors/gguf_file.h"

// llama.cpp's types of tokens.
enum rlhf__gguf_token_type {
    RLHF__GGUF_TOKEN_NORMAL = 1,
    RLHF__GGUF_TOKEN_UNKNOWN = 2,
    RLHF__GGUF_TOKEN_CONTROL = 3,
    RLHF__GGUF_TOKEN_USER_DEFINED = 4,
    RLHF__GGUF_TOKEN_UNUSED = 5,
    RLHF__GGUF_TOKEN_BYTE = 6
};

#define RLHF__GGUF_SPACE "\xE2\x96\x81" // U+2581, the sign for a space in SentencePiece

enum rlhf__gguf_role {
    RLHF__GGUF_BOS,
    RLHF__GGUF_EOS,
    RLHF__GGUF_UNK,
    RLHF__GGUF_PAD,
    RLHF__GGUF_EOT, // end of a turn
    RLHF__GGUF_EOM, // end of a message
    RLHF__GGUF_N_ROLES
};
// The key of a role: "tokenizer.ggml.bos_token_id". [any]
const char *rlhf__gguf_role_key(int32_t role);

// The keys of a tokenizer; all values are borrowed from the file.
struct rlhf__gguf_words {
    const char *path;                                            // for messages; borrowed
    const struct rlhf__gguf_value *token, *type, *score, *merge; // NULL: missing, except token
    int32_t n;
    int32_t spm;                      // 1: SentencePiece; 0: byte-level
    int32_t by_place;                 // spm: 1: merges follow the order of the pieces (Gemma)
    const struct rlhf__gguf_pre *pre; // byte-level; NULL: spm
    int32_t adds_bos, adds_eos;       // around a text
    int32_t space_prefix;             // spm: a space is put before a text
    int32_t id[RLHF__GGUF_N_ROLES];   // -1: missing
};

// Read the keys. Errors: those of gguf_text.h. [main]
rlhf_status rlhf__gguf_words_read(const struct rlhf__gguf_file *, const char *path,
                                  struct rlhf__gguf_words *out, struct rlhf__error *err);

// The text of token i: not NUL-ended, checked by rlhf__gguf_words_read to be UTF-8 without NULs;
// borrowed. [any]
const char *rlhf__gguf_word(const struct rlhf__gguf_words *, int32_t i, size_t *len);

// Its enum rlhf__gguf_token_type. An id without a token is RLHF__GGUF_TOKEN_UNUSED. [any]
int32_t rlhf__gguf_word_type(const struct rlhf__gguf_words *, int32_t i);

#endif
