// normalizer.h: reads the "normalizer" of tokenizer.json as a list of steps. The steps change a
// text before it is split into words.
//
// This file does not find added tokens (added.h) or split texts (pre_tokenizer.h). Internal to
// text/.
#ifndef RLHF_FORMATS_TEXT_NORMALIZER_H
#define RLHF_FORMATS_TEXT_NORMALIZER_H

#include "base/buf.h"
#include "text/pattern.h"

#include <jansson.h>

struct rlhf__bert_opts {
    int32_t clean, lower, strip_accents, split_cjk;
};

struct rlhf__normalizer; // opaque

// Read a "normalizer" of tokenizer.json. If it is NULL or null, *out is NULL, and texts stay
// unchanged. Errors: RLHF_E_UNSUPPORTED (an unknown type, which the message names), RLHF_E_INVALID,
// RLHF_E_NOMEM. [main]
rlhf_status rlhf__normalizer_open(const json_t *part, struct rlhf__normalizer **out,
                                  struct rlhf__error *err);

void rlhf__normalizer_close(struct rlhf__normalizer *normalizer); // NULL allowed

// Set *out to the normal form of s[0..n). s may contain any bytes. Invalid bytes are kept, except
// by BERT's normalizer, which drops them if clean_text is set, and otherwise replaces them with
// U+FFFD. `spare` is overwritten. s must not overlap *out or *spare. `match` has the
// budget of the text's searches. Errors: RLHF_E_NOMEM,
// RLHF_E_UNSUPPORTED (a pattern that takes too long). [any]
rlhf_status rlhf__normalizer_apply(const struct rlhf__normalizer *normalizer, const char *s,
                                   size_t n, struct rlhf__search *match, struct rlhf__buf *out,
                                   struct rlhf__buf *spare, struct rlhf__error *err);

// Returns the options of the BertNormalizer in the list of steps, or NULL if the list lacks one.
// The options may be changed before the normalizer is first used. [main]
struct rlhf__bert_opts *rlhf__normalizer_bert(struct rlhf__normalizer *normalizer);

#endif
