// generated.h: prints one text of `rlhf-host generate`.
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
    int32_t finished; // 1: ended by a stop token
    int32_t chat;     // 1: the prompt is a chat, so an empty line separates the response
};

// One object and a newline; ids and logp_sampled as in rollouts.jsonl. [any]
void rlhf__generated_json(const struct rlhf__generated *, struct rlhf__buf *out);

// Prompt and response, separated by an empty line for a chat, after a line "---" unless it is the
// first. [any]
void rlhf__generated_text(const struct rlhf__generated *, int first, struct rlhf__buf *out);

#endif
