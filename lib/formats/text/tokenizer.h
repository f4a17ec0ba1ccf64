// tokenizer.h: text to token ids and back, for the tokenizers of model directories.
//
// There are two kinds: BPE (GPT-2: vocab.json and merges.txt) and WordPiece (BERT: vocab.txt). If
// the directory has a tokenizer.json, that file decides. It must hold one of the two kinds, and
// older files that also describe a tokenizer must agree with it. Encoding and decoding are
// thread-safe, because a tokenizer is read-only after open.
//
// It is not a trainer of vocabularies, or a general tokenizers pipeline.
#ifndef RLHF_HOST_TEXT_TOKENIZER_H
#define RLHF_HOST_TEXT_TOKENIZER_H

#include "base/folder.h"
#include "chat/chat.h"
#include "text/vocab.h"

enum rlhf__tokenizer_kind { RLHF__TOKENIZER_BPE = 1, RLHF__TOKENIZER_WORDPIECE = 2 };

enum rlhf__encode_flag {
    RLHF__ENCODE_TEMPLATE = 1, // special tokens around the text, as transformers adds them
    RLHF__ENCODE_BOS = 2,      // put bos in front; RLHF_E_INVALID without a bos token
    RLHF__ENCODE_EOS = 4,      // put eos after the text; RLHF_E_INVALID without an eos token
    RLHF__ENCODE_SPECIAL = 8   // recognize special tokens such as <|endoftext|> in the text
};

enum rlhf__decode_flag { RLHF__DECODE_SKIP_SPECIAL = 1 }; // leave special tokens out

// -1 = the token is missing.
struct rlhf__tokenizer_info {
    int32_t kind;    // enum rlhf__tokenizer_kind
    int32_t n_vocab; // largest id + 1
    int32_t bos, eos, unk, cls, sep, pad;
};

struct rlhf__tokenizer; // opaque

// Open the tokenizer of a model directory. Caller owns *out; free with rlhf__tokenizer_close.
// Special tokens come from special_tokens_map.json, then tokenizer_config.json, then the *_token_id
// keys of config.json. Each of these files is optional. Errors: RLHF_E_INVALID (missing or bad
// files; the message has file and place), RLHF_E_IO, RLHF_E_NOMEM, RLHF_E_UNSUPPORTED. [main]
rlhf_status rlhf__tokenizer_open(const char *dir, struct rlhf__tokenizer **out,
                                 struct rlhf__error *err);

// NULL allowed. [main]
void rlhf__tokenizer_close(struct rlhf__tokenizer *tok);

// Borrowed, lives as long as the tokenizer. [any]
const struct rlhf__tokenizer_info *rlhf__tokenizer_info(const struct rlhf__tokenizer *tok);

// Append the ids of text to *out. flags: enum rlhf__encode_flag. Any bytes are allowed: with
// byte-level BPE, decode(encode(x)) == x for every x. Without RLHF__ENCODE_SPECIAL, an
// "<|endoftext|>" in a text is spelled out in ordinary tokens.
//
// With max_tokens > 0, this call appends at most that many ids. bos, eos, [CLS] and [SEP] count
// towards max_tokens and are kept; the last ids of the text itself are dropped.
//
// Errors: RLHF_E_NOMEM, RLHF_E_INVALID (bos or eos requested but absent), RLHF_E_UNSUPPORTED (a
// pattern takes too long on the text; the message quotes the pattern). [any]
rlhf_status rlhf__tokenizer_encode(const struct rlhf__tokenizer *tok, rlhf_str text, uint32_t flags,
                                   size_t max_tokens, struct rlhf__ids *out,
                                   struct rlhf__error *err);

// Places of a text at which no special token may begin or go on.
struct rlhf__cuts {
    size_t *at; // [n] bytes of the text
    size_t n, cap;
};

// rlhf__tokenizer_encode with RLHF__ENCODE_SPECIAL, but text that contains a cut is no special
// token: it is spelled out in ordinary tokens. [any]
rlhf_status rlhf__tokenizer_encode_cut(const struct rlhf__tokenizer *tok, rlhf_str text,
                                       const struct rlhf__cuts *cuts, struct rlhf__ids *out,
                                       struct rlhf__error *err);

// Write the bytes of ids[0..n) to out, at most cap of them. Returns the total number of bytes,
// which may exceed cap; out may be NULL if cap is 0. BPE gives the exact bytes, which need not be
// well-formed UTF-8 (see rlhf__utf8_repair). WordPiece puts spaces between words, but not between
// the pieces of a word. Ids outside the vocabulary are skipped. flags: enum rlhf__decode_flag. No
// NUL is added. [any]
size_t rlhf__tokenizer_decode(const struct rlhf__tokenizer *tok, const int32_t *ids, size_t n,
                              uint32_t flags, char *out, size_t cap);

// Decode to a fresh NUL-ended string of well-formed UTF-8; ill-formed parts become U+FFFD. *len
// (NULL allowed) gets its length. Caller frees with free(). NULL when out of memory. [any]
char *rlhf__tokenizer_text(const struct rlhf__tokenizer *tok, const int32_t *ids, size_t n,
                           uint32_t flags, size_t *len);

// Id of a token by its exact bytes (BPE: "." or " the"; WordPiece: "##ing"), -1 = none. [any]
int32_t rlhf__tokenizer_find(const struct rlhf__tokenizer *tok, rlhf_str token);

// 1 when id is a special token (bos, eos, cls, ... or an added special token). Plain text never
// encodes to one; tests check that. [any]
int rlhf__tokenizer_is_special(const struct rlhf__tokenizer *tok, int32_t id);

// Check that a model with n_vocab embedding rows can be used with this tokenizer. Every id must
// have a row. At most 1023 rows may be without a token (padding of the table to a round number).
// `what` names the model in the message. Errors: RLHF_E_INVALID. [any]
rlhf_status rlhf__tokenizer_check_model(const struct rlhf__tokenizer *tok, int32_t n_vocab,
                                        const char *what, struct rlhf__error *err);

// 1 when the tokenizer's own files put bos in front of a text: post_processor of tokenizer.json or,
// without that file, add_bos_token of tokenizer_config.json. [any]
int rlhf__tokenizer_has_bos(const struct rlhf__tokenizer *tok);

// Returns how many tokens the tokenizer's files put before a text (with `behind`, after the text).
// *ids lists these tokens from left to right, borrowed. [any]
size_t rlhf__tokenizer_around(const struct rlhf__tokenizer *tok, int behind, const int32_t **ids);

// 1 if the files put no tokens other than bos around a text. [any]
int rlhf__tokenizer_only_bos(const struct rlhf__tokenizer *tok);

// Choose whether encoding puts bos in front of texts. This only affects BPE tokenizers with a bos
// token. [one thread]
void rlhf__tokenizer_set_bos(struct rlhf__tokenizer *tok, int on);

// If rlhf__tokenizer_set_bos made a change, write it into dir, a copy of the tokenizer's files.
// Errors: RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__tokenizer_write_frame(const struct rlhf__tokenizer *tok,
                                        const struct rlhf__folder *dir, struct rlhf__error *err);

// The chat template of the directory, or the one chosen by rlhf__tokenizer_name_chat. Borrowed.
// [any]
const struct rlhf__chat *rlhf__tokenizer_chat(const struct rlhf__tokenizer *tok);

// Use this chat template from now on: a name or a file; "auto" changes nothing. Errors: those of
// rlhf__chat_name. [one thread]
rlhf_status rlhf__tokenizer_name_chat(struct rlhf__tokenizer *tok, const char *name,
                                      struct rlhf__error *err);

// If rlhf__tokenizer_name_chat chose a template, write it to chat_template.jinja of dir, a copy of
// the tokenizer's files. That file takes precedence over the templates in the other files. Errors:
// RLHF_E_IO. [main]
rlhf_status rlhf__tokenizer_write_chat(const struct rlhf__tokenizer *tok,
                                       const struct rlhf__folder *dir, struct rlhf__error *err);

// 1 when both tokenizers have the same tokens with the same ids. [any]
int rlhf__tokenizer_equal(const struct rlhf__tokenizer *a, const struct rlhf__tokenizer *b);

#endif
