// added_tokens.h: the list of the tokens that stand beside a model's own: what each is written as,
// how it is looked for in a text, and which of them are special.
//
// What it is not: reading it is added_read.h's, looking for them in texts added.h's; internal to
// text/.
#ifndef RLHF_HOST_TEXT_ADDED_TOKENS_H
#define RLHF_HOST_TEXT_ADDED_TOKENS_H

#include "text/match.h"
#include "text/vocab.h"

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

// Zero-initialise, largest -1; release with rlhf__added_finish.
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

// Append a token that is written s[0..len) and is not on the list; at and len of *token are set
// here. Errors: RLHF_E_NOMEM, RLHF_E_INVALID (more than 4 GiB). [main]
rlhf_status rlhf__added_append(struct rlhf__added *added, const char *s, size_t len,
                               const struct rlhf__added_token *token, struct rlhf__error *err);

// The token that is written so, NULL = not on the list. Borrowed until the next append. [any]
struct rlhf__added_token *rlhf__added_find(const struct rlhf__added *added, const char *s,
                                           size_t len);

// What a token of the list is written as, its len bytes. [any]
const char *rlhf__added_text(const struct rlhf__added *added, const struct rlhf__added_token *t);

// The same by id; {NULL, 0} where it is not on the list. [any]
rlhf_str rlhf__added_content(const struct rlhf__added *added, int32_t id);

// What a token decodes as: its bytes in the vocabulary, but the normal form of one that is
// normalized, as in the library; {NULL, 0} for ids without a token. [any]
rlhf_str rlhf__added_shown(const struct rlhf__added *added, const struct rlhf__vocab *vocab,
                           int32_t id);

void rlhf__added_finish(struct rlhf__added *added);

#endif
