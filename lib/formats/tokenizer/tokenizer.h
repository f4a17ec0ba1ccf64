// tokenizer.h: text to token ids and back, for the tokenizers of model directories.
//
// There are two kinds of tokenizer: BPE (GPT-2: vocab.json and merges.txt) and WordPiece (BERT:
// vocab.txt). If the directory has a tokenizer.json, the tokenizer is read from that file and must
// be of one of these kinds. Older files that also describe a tokenizer must agree with
// tokenizer.json. An open tokenizer is read-only, so several threads can encode and decode at the
// same time.
//
// This file does not train vocabularies, and it is not a general tokenizers pipeline.
#ifndef RLHF_FORMATS_TOKENIZER_TOKENIZER_H
#define RLHF_FORMATS_TOKENIZER_TOKENIZER_H

#include "base/folder.h"
#include "base/log.h"
#include "chat/chat.h"
#include "text/vocab.h"

enum rlhf__tokenizer_kind { RLHF__TOKENIZER_BPE = 1, RLHF__TOKENIZER_WORDPIECE = 2 };

enum rlhf__encode_flag {
    RLHF__ENCODE_TEMPLATE = 1, // put special tokens around the text, as transformers does
    RLHF__ENCODE_BOS = 2,      // put bos before the text; RLHF_E_INVALID without a bos token
    RLHF__ENCODE_EOS = 4,      // put eos after the text; RLHF_E_INVALID without an eos token
    RLHF__ENCODE_SPECIAL = 8   // recognize special tokens such as <|endoftext|> in the text
};

enum rlhf__decode_flag { RLHF__DECODE_SKIP_SPECIAL = 1 }; // leave special tokens out

// Special tokens: an id of -1 means that the token is missing.
struct rlhf__tokenizer_info {
    int32_t kind;    // enum rlhf__tokenizer_kind
    int32_t n_vocab; // largest id + 1
    int32_t bos, eos, unk, cls, sep, pad;
};

struct rlhf__tokenizer; // opaque

// Open the tokenizer of a model directory. The caller owns *out; free it with
// rlhf__tokenizer_close. Each special token is taken from the first file that names it:
// special_tokens_map.json (ignored if tokenizer_config.json has an added_tokens_decoder), then
// tokenizer_config.json, then config.json (the *_token_id keys). Each of these files is optional.
// Errors: RLHF_E_INVALID (missing or invalid files; the message has the file and the position),
// RLHF_E_IO, RLHF_E_NOMEM, RLHF_E_UNSUPPORTED. [main]
rlhf_status rlhf__tokenizer_open(const char *dir, struct rlhf__tokenizer **out,
                                 struct rlhf__error *err);

// NULL allowed. [main]
void rlhf__tokenizer_close(struct rlhf__tokenizer *tok);

// Encoding then logs, once, that a text has a byte or character for which the vocabulary lacks a
// token, and what becomes of it. `log` must outlive the tokenizer. [one thread]
void rlhf__tokenizer_set_log(struct rlhf__tokenizer *tok, struct rlhf__log *log);

// Borrowed, lives as long as the tokenizer. [any]
const struct rlhf__tokenizer_info *rlhf__tokenizer_info(const struct rlhf__tokenizer *tok);

// Append the ids of `text` to *out. `flags` has bits of enum rlhf__encode_flag. The text may
// contain any bytes: with a byte-level BPE that has a token for each byte, decode(encode(x)) == x
// for every x. Bytes without a token become unk or nothing. Without RLHF__ENCODE_SPECIAL, an
// "<|endoftext|>" in the text becomes ordinary tokens.
//
// With max_tokens > 0, this call appends at most that many ids. bos, eos, [CLS] and [SEP] count
// toward max_tokens and are always kept. If there are too many ids, the last ids of the text
// itself are dropped.
//
// Errors: RLHF_E_NOMEM, RLHF_E_INVALID (bos or eos requested but missing), RLHF_E_UNSUPPORTED (a
// pattern takes too long on the text; the message quotes the pattern). [any]
rlhf_status rlhf__tokenizer_encode(const struct rlhf__tokenizer *tok, rlhf_str text, uint32_t flags,
                                   size_t max_tokens, struct rlhf__ids *out,
                                   struct rlhf__error *err);

// Positions in a text. If the text of a special token begins at such a position or extends over it,
// that text becomes ordinary tokens.
struct rlhf__cuts {
    size_t *at; // [n] offsets in the text, in bytes
    size_t n, cap;
};

// Like rlhf__tokenizer_encode with RLHF__ENCODE_SPECIAL, but follows the rule of struct rlhf__cuts.
// [any]
rlhf_status rlhf__tokenizer_encode_cut(const struct rlhf__tokenizer *tok, rlhf_str text,
                                       const struct rlhf__cuts *cuts, struct rlhf__ids *out,
                                       struct rlhf__error *err);

// Write the text of ids[0..n) to `out`, at most `cap` bytes. Returns the number of bytes of the
// whole text, which may exceed `cap`. `out` may be NULL if `cap` is 0. With BPE, the bytes are
// exact and need not be valid UTF-8 (see rlhf__utf8_repair). WordPiece puts spaces between words,
// but not between the pieces of a word. Ids outside the vocabulary are skipped. `flags` has bits of
// enum rlhf__decode_flag. No NUL is added. [any]
size_t rlhf__tokenizer_decode(const struct rlhf__tokenizer *tok, const int32_t *ids, size_t n,
                              uint32_t flags, char *out, size_t cap);

// Decode to a new NUL-terminated string of valid UTF-8; invalid parts become U+FFFD. Sets *len to
// the string's length; `len` may be NULL. The caller frees the string with free(). Returns NULL if
// memory runs out. [any]
char *rlhf__tokenizer_text(const struct rlhf__tokenizer *tok, const int32_t *ids, size_t n,
                           uint32_t flags, size_t *len);

// Returns the id of the token with exactly these bytes (BPE: "." or " the"; WordPiece: "##ing"), or
// -1 if the tokenizer lacks that token. [any]
int32_t rlhf__tokenizer_find(const struct rlhf__tokenizer *tok, rlhf_str token);

// Returns 1 if `id` belongs to a special token (bos, eos, cls, ... or an added special token).
// Without RLHF__ENCODE_SPECIAL, no part of a text becomes such an id; tests check that. [any]
int rlhf__tokenizer_is_special(const struct rlhf__tokenizer *tok, int32_t id);

// Finds the first position at or after `from` where the text of an added special token begins.
// Returns 0 if none follows. [any]
int rlhf__tokenizer_next_special(const struct rlhf__tokenizer *tok, rlhf_str text, size_t from,
                                 size_t *at);

// Check that a model with n_vocab embedding rows can be used with this tokenizer. Every id must
// have a row, but special tokens at the end that no text contains, such as an added [PAD], are left
// out with a warning. Models often have rows without a token, to pad the table to a round number;
// 1024 or more cause a warning. `what` names the model in the messages. Errors: RLHF_E_INVALID.
// [one thread]
rlhf_status rlhf__tokenizer_fit(struct rlhf__tokenizer *tok, int32_t n_vocab, const char *what,
                                struct rlhf__error *err);

// Returns 1 if the tokenizer's files put bos before a text. If there is a tokenizer.json, its
// post_processor decides, otherwise add_bos_token in tokenizer_config.json. [any]
int rlhf__tokenizer_has_bos(const struct rlhf__tokenizer *tok);

// If `behind` is 1, returns how many tokens the tokenizer's files put after a text, otherwise how
// many they put before it. *ids lists these tokens from left to right; the list is borrowed. [any]
size_t rlhf__tokenizer_around(const struct rlhf__tokenizer *tok, int behind, const int32_t **ids);

// 1 if the files put only bos, or nothing, around a text. [any]
int rlhf__tokenizer_only_bos(const struct rlhf__tokenizer *tok);

// Choose whether encoding puts bos before texts. This only affects BPE tokenizers with a bos token.
// [one thread]
void rlhf__tokenizer_set_bos(struct rlhf__tokenizer *tok, int on);

// If rlhf__tokenizer_set_bos changed the frame (the special tokens around a text), write the new
// frame into `dir`, which contains a copy of the tokenizer's files. Errors: RLHF_E_IO,
// RLHF_E_NOMEM. [main]
rlhf_status rlhf__tokenizer_write_frame(const struct rlhf__tokenizer *tok,
                                        const struct rlhf__folder *dir, struct rlhf__error *err);

// Append the normal form of s[0..n) to `out`. Without a normalizer, that is s itself. Errors:
// RLHF_E_NOMEM, RLHF_E_UNSUPPORTED (a pattern that takes too long). [any]
rlhf_status rlhf__tokenizer_normal(const struct rlhf__tokenizer *tok, const char *s, size_t n,
                                   struct rlhf__buf *out, struct rlhf__error *err);

// Returns the chat template chosen by rlhf__tokenizer_name_chat, or else the directory's template.
// Borrowed. [any]
const struct rlhf__chat *rlhf__tokenizer_chat(const struct rlhf__tokenizer *tok);

// Use another chat template from now on: a named template, or the user's file if `name` is a path.
// "auto" changes nothing. Errors: those of rlhf__chat_name. [one thread]
rlhf_status rlhf__tokenizer_name_chat(struct rlhf__tokenizer *tok, const char *name,
                                      struct rlhf__error *err);

// Apply a choice of template, variables and date. Errors: those of rlhf__chat_choose. [one thread]
rlhf_status rlhf__tokenizer_choose_chat(struct rlhf__tokenizer *tok,
                                        const struct rlhf__chat_choice *choice,
                                        const struct rlhf__chat_choice *flags,
                                        struct rlhf__error *err);

// If a template or variables of it were chosen, write the template to chat_template.jinja in `dir`,
// which contains a copy of the tokenizer's files. That file takes precedence over the templates in
// the other files. Errors: RLHF_E_IO. [main]
rlhf_status rlhf__tokenizer_write_chat(const struct rlhf__tokenizer *tok,
                                       const struct rlhf__folder *dir, struct rlhf__error *err);

// 1 when both tokenizers have the same tokens with the same ids. [any]
int rlhf__tokenizer_equal(const struct rlhf__tokenizer *a, const struct rlhf__tokenizer *b);

#endif
