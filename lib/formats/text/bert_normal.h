// bert_normal.h: BERT's text cleaning, the BertNormalizer of tokenizer.json.
//
// What it is not: it cuts no words (pre_tokenizer.h) and looks into no vocabulary; internal to
// text/.
#ifndef RLHF_HOST_TEXT_BERT_NORMAL_H
#define RLHF_HOST_TEXT_BERT_NORMAL_H

#include "base/buf.h"

struct rlhf__bert_opts {
    int32_t clean, lower, strip_accents, split_cjk;
};

// Append s[0..n) to out, with clean: control characters, NUL and U+FFFD dropped and white space as
// ' '; with split_cjk: CJK ideographs between spaces. Ill-formed UTF-8 counts as U+FFFD. [any]
void rlhf__bert_clean(const struct rlhf__bert_opts *opts, const char *s, size_t n,
                      struct rlhf__buf *out);

// Append s[0..n), in NFD where accents are stripped, to out without non-spacing marks and in lower
// case, as the options say. [any]
void rlhf__bert_finish(const struct rlhf__bert_opts *opts, const char *s, size_t n,
                       struct rlhf__buf *out);

#endif
