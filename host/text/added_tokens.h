// added_tokens.h: the tokens that stand beside a model's own: what each is written as, how it is
// looked for in a text, and which of them are special.
//
// What it is not: looking for them is added.h's; internal to text/.
#ifndef RLHF_HOST_TEXT_ADDED_TOKENS_H
#define RLHF_HOST_TEXT_ADDED_TOKENS_H

#include "text/match.h"

#include <jansson.h>

struct rlhf__tokenizer;

// As in tokenizer.json. single_word: found only where no word goes on at either side; lstrip,
// rstrip: takes the white space there along; normalized: is looked for in the normal text, in its
// own normal form, after the others have been found in the text itself.
struct rlhf__added_token {
    uint32_t at, len;             // bytes in `text`
    uint32_t shown_at, shown_len; // what it decodes as, in `text`; where vocab_token.shown is set
    int32_t id;
    uint8_t special, single_word, lstrip, rstrip, normalized;
    uint8_t reserved[3];
};

// Zero-initialise; release with rlhf__added_finish.
struct rlhf__added {
    struct rlhf__buf text;
    struct rlhf__added_token *item; // [n]
    size_t n, cap;
    uint32_t *slot;                      // [n_slots] hash table of places, UINT32_MAX = empty
    size_t n_slots;                      // a power of two, at least twice n
    int32_t n_model;                     // tokens of the model itself
    int32_t largest;                     // the largest id of the list, -1 = it is empty
    struct rlhf__matcher plain, normal;  // values are places in the list
    int plain_ordinary, normal_ordinary; // 1 when one of them is not special
};

// Add {"id", "content", "special", ...} for each entry of tokenizer.json's added_tokens. Errors:
// RLHF_E_INVALID (also where the tokenizers library would give a token another id), RLHF_E_NOMEM.
// [main]
rlhf_status rlhf__added_read(struct rlhf__tokenizer *tok, const json_t *list,
                             struct rlhf__error *err);

// The same of added_tokens.json, {"content": id}; which are special, other files say. [main]
rlhf_status rlhf__added_read_ids(struct rlhf__tokenizer *tok, json_t *file,
                                 struct rlhf__error *err);

// The same of added_tokens_decoder of tokenizer_config.json, {"id": {"content", "special", ...}}.
// Beside a tokenizer.json it must say the same. [main]
rlhf_status rlhf__added_read_decoder(struct rlhf__tokenizer *tok, json_t *decoder,
                                     struct rlhf__error *err);

// Make a token special that tokenizer_config.json or special_tokens_map.json names: "content" or
// {"content", "lstrip", ...}. One that no token is written as is left alone. [main]
rlhf_status rlhf__added_mark(struct rlhf__tokenizer *tok, const json_t *named,
                             struct rlhf__error *err);

// Make a token special whose id config.json names. [main]
rlhf_status rlhf__added_mark_id(struct rlhf__tokenizer *tok, int32_t id, struct rlhf__error *err);

// Id of the token that is written so in the files, -1 = none. [any]
int32_t rlhf__added_id(const struct rlhf__tokenizer *tok, const char *content, size_t len);

// What a token is written as in the files; {NULL, 0} where it is not on the list. [any]
rlhf_str rlhf__added_content(const struct rlhf__added *added, int32_t id);

// What a token decodes as: its bytes in the vocabulary, but the normal form of one that is
// normalized, as in the library; {NULL, 0} for ids without a token. [any]
rlhf_str rlhf__added_shown(const struct rlhf__tokenizer *tok, int32_t id);

// Make them findable in texts, after the last was added. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__added_ready(struct rlhf__tokenizer *tok, struct rlhf__error *err);

void rlhf__added_finish(struct rlhf__added *added);

#endif
