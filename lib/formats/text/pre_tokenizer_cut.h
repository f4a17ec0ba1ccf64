// pre_tokenizer_cut.h: the steps that a pre-tokeniser is made of, and cutting a text by them.
//
// What it is not: it reads no tokenizer.json (pre_tokenizer.c does); internal to text/.
#ifndef RLHF_HOST_TEXT_PRE_TOKENIZER_CUT_H
#define RLHF_HOST_TEXT_PRE_TOKENIZER_CUT_H

#include "text/pattern.h"
#include "text/pre_tokenizer.h"

enum { RLHF__CUT_STEPS_MAX = 16 };

// What becomes of a delimiter: the "behavior" of tokenizer.json, in its order.
enum rlhf__cut_behaviour {
    RLHF__CUT_REMOVED,
    RLHF__CUT_ISOLATED,
    RLHF__CUT_PREVIOUS, // goes with what is before it
    RLHF__CUT_NEXT,     // goes with what is behind it
    RLHF__CUT_RUNS      // neighbours of a kind go together
};

enum rlhf__cut_prefix {
    RLHF__PREFIX_NEVER,
    RLHF__PREFIX_FIRST, // where the whole text begins
    RLHF__PREFIX_ALWAYS
};

// Delimiters are what `is` or `pattern` finds, in both NULL none are.
struct rlhf__cut_step {
    int (*is)(uint32_t cp);
    struct rlhf__pattern *pattern; // owned
    int32_t behaviour, invert;     // invert: delimiters are what is not found
    // Before that, with `replaces`, spaces become `space`, one character; and by `prefix` it goes
    // in front of a piece that does not begin with it.
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
