// pre_tokenizer_impl.h: the steps that a pre-tokeniser is made of.
//
// What it is not: for others than pre_tokenizer*.c.
#ifndef RLHF_HOST_TEXT_PRE_TOKENIZER_IMPL_H
#define RLHF_HOST_TEXT_PRE_TOKENIZER_IMPL_H

#include "text/pattern.h"
#include "text/pre_tokenizer.h"

enum { RLHF__CUT_STEPS_MAX = 16 };

struct rlhf__cut_step {
    // Append the pieces of s[at..at + n), well-formed UTF-8, to out, in order; what a step leaves
    // out is dropped. s is in->text.
    rlhf_status (*cut)(const struct rlhf__cut_step *step, const char *s, size_t at, size_t n,
                       struct rlhf__pieces *out, struct rlhf__error *err);
    struct rlhf__pattern *pattern; // owned
};

struct rlhf__pre_tokenizer {
    struct rlhf__cut_step step[RLHF__CUT_STEPS_MAX];
    size_t n;
    int32_t bytes; // the model sees bytes
};

// Add the steps of a part of tokenizer.json that is no Sequence. [main]
rlhf_status rlhf__cut_steps_read(const json_t *part, struct rlhf__pre_tokenizer *pre,
                                 struct rlhf__error *err);

#endif
