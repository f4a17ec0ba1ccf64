// response_rules.h: decides where responses end and where their scored text ends: sampling.stop and
// the period rule, resolved for one tokenizer.
//
// Stop texts are matched on the decoded bytes of the response alone. So they may span tokens, begin
// and end inside one, and never begin in the prompt. This file does not sample or score.
#ifndef RLHF_HOST_RESPONSE_RULES_H
#define RLHF_HOST_RESPONSE_RULES_H

#include "config/schema.h"
#include "text/tokenizer.h"

struct rlhf__response_rules; // opaque

// Create the rules of sampling.stop and response.*; the configs and the tokenizer must outlive
// them. Errors: RLHF_E_INVALID (an id outside the vocabulary, a period that is not one token),
// RLHF_E_NOMEM. [main]
rlhf_status rlhf__response_rules_create(const struct rlhf__sampling_config *sampling,
                                        const struct rlhf__response_config *response,
                                        const struct rlhf__tokenizer *tok,
                                        struct rlhf__response_rules **out, struct rlhf__error *err);
void rlhf__response_rules_destroy(struct rlhf__response_rules *); // NULL allowed [main]

// The tokenizer of the rules. [any]
const struct rlhf__tokenizer *rlhf__response_rules_tok(const struct rlhf__response_rules *);

// *stops = 1 if the last of a response's ids[0..n), n > 0, is a stop id or completes a stop text.
// Call it after every token, so that no earlier token is one. Errors: RLHF_E_NOMEM. [step]
rlhf_status rlhf__response_stops(struct rlhf__response_rules *, const int32_t *ids, int32_t n,
                                 int *stops, struct rlhf__error *err);

// Where the first stop text begins in a response's text of n bytes, or n. [any]
size_t rlhf__response_text_end(const struct rlhf__response_rules *, const char *text, size_t n);

// Tokens of a response of n that are scored by the period rule: up to the first period among tokens
// period_min..period_max, counted from 1, or -1. [any]
int32_t rlhf__response_period(const struct rlhf__response_rules *, const int32_t *ids, int32_t n);

#endif
