// response_rules.h: where responses end and where their scored text does: sampling.stop and the
// period rule, looked up in a tokenizer once.
//
// Stop texts are matched on the decoded bytes of the response alone, so that they may span tokens,
// begin and end inside one, and never begin in the prompt. It draws nothing and scores nothing.
#ifndef RLHF_HOST_RESPONSE_RULES_H
#define RLHF_HOST_RESPONSE_RULES_H

#include "config/schema.h"
#include "text/tokenizer.h"

struct rlhf__response_rules; // opaque

// Rules of sampling.stop and response.*; the configs and the tokenizer must outlive them. Errors:
// RLHF_E_INVALID (an id that is no token, a period that is not one token), RLHF_E_NOMEM. [main]
rlhf_status rlhf__response_rules_create(const struct rlhf__sampling_config *sampling,
                                        const struct rlhf__response_config *response,
                                        const struct rlhf__tokenizer *tok,
                                        struct rlhf__response_rules **out, struct rlhf__error *err);
void rlhf__response_rules_destroy(struct rlhf__response_rules *); // NULL allowed [main]

// The tokenizer they were looked up in. [any]
const struct rlhf__tokenizer *rlhf__response_rules_tok(const struct rlhf__response_rules *);

// *stops = 1 when the last of a response's ids[0..n), n > 0, is a stop id or completes a stop text.
// Asked after every token, so that none before it does. Errors: RLHF_E_NOMEM. [step]
rlhf_status rlhf__response_stops(struct rlhf__response_rules *, const int32_t *ids, int32_t n,
                                 int *stops, struct rlhf__error *err);

// Where the first stop text begins in a response's text of n bytes; n when there is none. [any]
size_t rlhf__response_text_end(const struct rlhf__response_rules *, const char *text, size_t n);

// Tokens of a response of n that are scored by the period rule: up to the first period among tokens
// period_min..period_max, counted from 1; -1 when there is none. [any]
int32_t rlhf__response_period(const struct rlhf__response_rules *, const int32_t *ids, int32_t n);

#endif
