// bert_normal.h: BERT's text cleaning, up to words and punctuation marks, as code points.
//
// What it is not: it does not look into a vocabulary (wordpiece.c does); internal to text/.
#ifndef RLHF_HOST_TEXT_BERT_NORMAL_H
#define RLHF_HOST_TEXT_BERT_NORMAL_H

#include "base/error.h"

struct rlhf__bert_opts {
    int32_t lower, strip_accents, split_cjk;
};

// Zero-initialise; free `cp` with free().
struct rlhf__codepoints {
    uint32_t *cp;
    size_t n, cap;
};

// Append the cleaned text to *out: control characters, NUL and U+FFFD dropped (ill-formed UTF-8
// counts as U+FFFD), white space as ' ', CJK ideographs between spaces, with strip_accents the
// canonical decomposition (NFD) without non-spacing marks, with lower the lower case.
// Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__bert_normalise(const struct rlhf__bert_opts *opts, const char *s, size_t n,
                                 struct rlhf__codepoints *out, struct rlhf__error *err);

// 1 for white space / for what BERT splits off as a mark of its own. [any]
int rlhf__bert_is_space(uint32_t cp);
int rlhf__bert_is_punct(uint32_t cp);

#endif
