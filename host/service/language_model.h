// language_model.h: a language model that a plugin has opened: what its service computes.
#ifndef RLHF_HOST_SERVICE_LANGUAGE_MODEL_H
#define RLHF_HOST_SERVICE_LANGUAGE_MODEL_H

#include "service/served.h"

#include <rlhf/service.h>

// The model of a directory, for the objects of all plugins that opened it. It has the largest of
// their limits.
struct rlhf__language {
    struct rlhf__served served;
    int32_t longest, slots;
};

// A plugin's object, with its limits (rlhf_language_open).
struct rlhf_language_model {
    struct rlhf_language_model *next; // of the service
    struct rlhf__language *of;
    int32_t longest, slots;
};

// Append the ids of a JSON list of messages, as rlhf_language_prompt describes it. Errors:
// RLHF_E_INVALID, RLHF_E_NOMEM. [any]
rlhf_status rlhf__language_messages(const struct rlhf__tokenizer *tok, rlhf_str text,
                                    struct rlhf__ids *out, struct rlhf__error *err);

// Compute score() and generate() of the service. The arguments are checked. Errors: RLHF_E_INVALID,
// RLHF_E_NOMEM, RLHF_E_CANCELLED, those of the model. [step]
rlhf_status rlhf__language_score(const rlhf_language_model *, const rlhf_language_rows *,
                                 float *logp, struct rlhf__error *err);
rlhf_status rlhf__language_respond(const rlhf_language_model *, const rlhf_language_request *,
                                   const rlhf_language_responses *, struct rlhf__error *err);

// The function `largest` of rlhf__served_kind. [main]
rlhf_status rlhf__language_largest(const struct rlhf__served *, const struct rlhf__model *m,
                                   const struct rlhf__rows *, struct rlhf__error *err);

#endif
