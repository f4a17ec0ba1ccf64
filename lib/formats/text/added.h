// added.h: a tokenizer's list of added tokens, which are found as whole texts, before a text is
// split into words. This file also has a search for many texts in one text.
//
// This file does not read the files that define the tokens (added_read.h does) or split texts
// (tokenizer.c does). Internal to text/.
#ifndef RLHF_FORMATS_TEXT_ADDED_H
#define RLHF_FORMATS_TEXT_ADDED_H

#include "base/buf.h"
#include "text/vocab.h"

// ---- finding many texts in one text: the earliest match, and the longest one at that place ----

struct rlhf__needle {
    uint32_t at, len; // position and length in `bytes`
    uint32_t value, order;
};

// Zero-initialize; release with rlhf__matcher_finish. Add all texts before you sort them.
struct rlhf__matcher {
    struct rlhf__buf bytes;
    struct rlhf__needle *item; // [n]; after sorting, in the order of their bytes
    size_t n, cap;
    uint32_t first[257]; // items that begin with byte b are item[first[b]..first[b + 1])
};

// Add the text s[0..len). A search that finds this text returns `value`. If the same text is added
// twice, the first one is used. An empty text is never found. Errors: RLHF_E_NOMEM, RLHF_E_INVALID
// (more than 4 GiB). [one thread]
rlhf_status rlhf__matcher_add(struct rlhf__matcher *m, const char *s, size_t len, uint32_t value,
                              struct rlhf__error *err);

// Sort the texts. Call this function after the last text is added and before the first search. [one
// thread]
void rlhf__matcher_sort(struct rlhf__matcher *m);

struct rlhf__match {
    size_t begin, end; // bytes of the text
    uint32_t value;
};

// Find the first match in s[from..n). Returns 0 if there is no match. [any]
int rlhf__matcher_next(const struct rlhf__matcher *m, const char *s, size_t n, size_t from,
                       struct rlhf__match *out);

void rlhf__matcher_finish(struct rlhf__matcher *m);

// ---- the list ----

// Flags as in tokenizer.json. A token with `single_word` matches only whole words. A token with
// `lstrip` or `rstrip` includes the white space on its left or right. If a token has `normalized`,
// the tokenizer searches for the token's normal form in the normalized text, after it has found the
// other tokens in the original text.
struct rlhf__added_token {
    uint32_t at, len;             // position and length in `text`
    uint32_t shown_at, shown_len; // decoded text, in `text`, if vocab_token.shown is set
    int32_t id;
    uint8_t special, single_word, lstrip, rstrip, normalized;
};

// Zero-initialize and set `largest` to -1; release with rlhf__added_finish.
struct rlhf__added {
    struct rlhf__buf text;
    struct rlhf__added_token *item; // [n]
    size_t n, cap;
    uint32_t *slot;  // [n_slots] hash table of indices in the list, UINT32_MAX = empty
    size_t n_slots;  // a power of two, at least twice n
    int32_t n_model; // number of tokens of the model itself
    int32_t largest; // the largest id on the list, -1 = the list is empty
    struct rlhf__matcher plain, normal;  // their values are indices in the list
    int plain_ordinary, normal_ordinary; // 1 if the matcher has a token that is not special
};

// Append a token with the text s[0..len). The text must not be on the list yet. The list keeps a
// copy of *token, and sets `at` and `len` of the copy. Errors: RLHF_E_NOMEM, RLHF_E_INVALID (more
// than 4 GiB). [main]
rlhf_status rlhf__added_append(struct rlhf__added *added, const char *s, size_t len,
                               const struct rlhf__added_token *token, struct rlhf__error *err);

// The token with this text; NULL if it is not on the list. Borrowed until the next append. [any]
struct rlhf__added_token *rlhf__added_find(const struct rlhf__added *added, const char *s,
                                           size_t len);

// The text of a token on the list; it has t->len bytes. [any]
const char *rlhf__added_text(const struct rlhf__added *added, const struct rlhf__added_token *t);

// The text of the token with this id; {NULL, 0} if the id is not on the list. [any]
rlhf_str rlhf__added_content(const struct rlhf__added *added, int32_t id);

// Returns the decoded text of a token. If the token has the flag `normalized`, this is its normal
// form, as in the tokenizers library. Otherwise it is the token's bytes in the vocabulary. Returns
// {NULL, 0} for an unused id. [any]
rlhf_str rlhf__added_shown(const struct rlhf__added *added, const struct rlhf__vocab *vocab,
                           int32_t id);

// Returns the length of the special token whose text begins s; 0 if none does. [any]
size_t rlhf__added_special_at(const struct rlhf__added *added, rlhf_str s);

// Finds the first position at or after `from` where the text of a special token begins. Returns 0
// if none follows. [any]
int rlhf__added_next_special(const struct rlhf__added *added, rlhf_str text, size_t from,
                             size_t *at);

void rlhf__added_finish(struct rlhf__added *added);

#endif
