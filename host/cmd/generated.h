// generated.h: one text of `rlhf-host generate` as it is printed.
#ifndef RLHF_HOST_GENERATED_H
#define RLHF_HOST_GENERATED_H

#include "base/buf.h"

#include <rlhf/base.h>

// All borrowed.
struct rlhf__generated {
    rlhf_str prompt, response;
    const int32_t *prompt_ids, *ids; // [n_prompt], [n]
    const float *logp;               // [n] of ids, as sampled
    size_t n_prompt, n;
    int32_t finished; // 1: a stop token ended it
    int32_t chat;     // 1: prompt are messages, which the response answers: an empty line between
};

// One object and a newline; ids and logp_sampled as in rollouts.jsonl. [any]
void rlhf__generated_json(const struct rlhf__generated *, struct rlhf__buf *out);

// Prompt and response, of messages with an empty line between, after a line "---" when it is not
// the first. [any]
void rlhf__generated_text(const struct rlhf__generated *, int first, struct rlhf__buf *out);

#endif
