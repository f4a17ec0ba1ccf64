// response_rules.h: decides where responses end and which part of their text is scored. It applies
// sampling.stop_at_eos, sampling.stop and the period rule.
//
// Stop texts are matched in the decoded bytes of the response only. A stop text may therefore span
// several tokens and begin or end inside a token, but it never begins in the prompt. Nothing is
// sampled or scored here.
#ifndef RLHF_HOST_SAMPLE_RESPONSE_RULES_H
#define RLHF_HOST_SAMPLE_RESPONSE_RULES_H

#include "config/schema.h"
#include "model/model.h"
#include "tokenizer/tokenizer.h"

struct rlhf__response_rules; // opaque

// Create the rules of sampling.stop and response.*. The configs and the tokenizer must outlive the
// rules. Errors: RLHF_E_INVALID (an id outside the vocabulary, a period that is not a single
// token), RLHF_E_NOMEM. [main]
rlhf_status rlhf__response_rules_open(const struct rlhf__sampling_config *sampling,
                                      const struct rlhf__response_config *response,
                                      const struct rlhf__tokenizer *tok,
                                      struct rlhf__response_rules **out, struct rlhf__error *err);
void rlhf__response_rules_close(struct rlhf__response_rules *); // NULL allowed [main]

// Returns the tokenizer of the rules. [any]
const struct rlhf__tokenizer *rlhf__response_rules_tok(const struct rlhf__response_rules *);

// Sets *stops to 1 if the response's last token, ids[n - 1], is a stop id or completes a stop text,
// otherwise to 0. Must be called after every token, because it assumes that no earlier token has
// ended the response. n is at least 1. Errors: RLHF_E_NOMEM. [step]
rlhf_status rlhf__response_stops(struct rlhf__response_rules *, const int32_t *ids, int32_t n,
                                 int *stops, struct rlhf__error *err);

// Returns the offset of the first stop text in a response's text of n bytes, or n if the text
// contains none. [any]
size_t rlhf__response_text_end(const struct rlhf__response_rules *, const char *text, size_t n);

// Returns how many of a response's n tokens the period rule scores: those up to the first period
// among tokens period_min..period_max, counted from 1. Returns -1 if there is no period among these
// tokens. [any]
int32_t rlhf__response_period(const struct rlhf__response_rules *, const int32_t *ids, int32_t n);

// Returns 1 if the model's end tokens end a response, as set by sampling.stop_at_eos. With "auto"
// they do, unless the model's config.json says that texts continue after an end token. [any]
int rlhf__response_stops_at_eos(const struct rlhf__sampling_config *, const struct rlhf__model *);

// Log in one line how long responses may be and where they end. [main]
void rlhf__response_say_ends(const struct rlhf__sampling_config *, const struct rlhf__model *,
                             struct rlhf__log *log);

#endif
