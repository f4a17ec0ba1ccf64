// wordpiece.h: BERT's WordPiece: each word becomes the longest tokens that fit, greedily from the
// left; tokens inside a word begin with "##".
//
// What it is not: it reads no files and adds no [CLS] or [SEP]; internal to text/.
#ifndef RLHF_HOST_TEXT_WORDPIECE_H
#define RLHF_HOST_TEXT_WORDPIECE_H

#include "text/ids.h"
#include "text/vocab.h"

struct rlhf__wordpiece {
    const struct rlhf__vocab *vocab; // borrowed
    int32_t unk; // id for words that no tokens make up and for words of over 100 characters
};

// Append the ids of the word s[0..n); ill-formed UTF-8 is unknown. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__wordpiece_encode(const struct rlhf__wordpiece *wp, const char *s, size_t n,
                                   struct rlhf__ids *out, struct rlhf__error *err);

#endif
