// pre_tokenizer_cut.h: the steps that a pre-tokeniser is made of, and cutting a text by them.
//
// What it is not: it reads no tokenizer.json (pre_tokenizer.c does); internal to text/.
#ifndef RLHF_HOST_TEXT_PRE_TOKENIZER_CUT_H
#define RLHF_HOST_TEXT_PRE_TOKENIZER_CUT_H

#include "text/pattern.h"
#include "text/pre_tokenizer.h"

enum { RLHF__CUT_STEPS_MAX = 16 };

// What happens to a delimiter: the "behavior" of tokenizer.json, in its order.
enum rlhf__cut_behaviour {
    RLHF__CUT_REMOVED,
    RLHF__CUT_ISOLATED,
    RLHF__CUT_PREVIOUS, // joins the piece before it
    RLHF__CUT_NEXT,     // joins the piece after it
    RLHF__CUT_RUNS      // adjacent spans of the same kind are joined
};

enum rlhf__cut_prefix {
    RLHF__PREFIX_NEVER,
    RLHF__PREFIX_FIRST, // where the whole text begins
    RLHF__PREFIX_ALWAYS
};

// `is` or `pattern` finds the delimiters; none if both are NULL.
struct rlhf__cut_step {
    int (*is)(uint32_t cp);
    struct rlhf__pattern *pattern; // owned
    int32_t behaviour, invert;     // invert: the text between matches is the delimiter
    // Before that, `replaces` turns spaces into the character `space`, and `prefix` puts it in
    // front of a piece that does not begin with it.
    char space[4];
    size_t n_space;
    int32_t prefix, replaces; // enum rlhf__cut_prefix
};

struct rlhf__pre_tokenizer {
    struct rlhf__cut_step step[RLHF__CUT_STEPS_MAX];
    size_t n;
    int32_t bytes; // the model sees bytes
};

#endif
