// pattern.h: a regular expression of a tokenizer, found in texts by PCRE2.
//
// What it is not: it decides nothing about what is done with what it finds; internal to text/.
#ifndef RLHF_HOST_TEXT_PATTERN_H
#define RLHF_HOST_TEXT_PATTERN_H

#include "base/error.h"

struct rlhf__pattern; // opaque

// The pattern of GPT-2. Errors: RLHF_E_NOMEM, RLHF_E_INTERNAL. [main]
rlhf_status rlhf__pattern_gpt2(struct rlhf__pattern **out, struct rlhf__error *err);

void rlhf__pattern_destroy(struct rlhf__pattern *pattern); // NULL allowed

// Where a match is: bytes [begin, end) of the text.
struct rlhf__found {
    size_t begin, end;
};

// The next match in s[0..n), well-formed UTF-8, behind found->end; begin and end are n when there
// is none. Errors: RLHF_E_NOMEM, RLHF_E_INTERNAL. [any]
rlhf_status rlhf__pattern_next(const struct rlhf__pattern *pattern, const char *s, size_t n,
                               struct rlhf__found *found, struct rlhf__error *err);

#endif
