// turn_texts.h: the texts of a row of several turns. A reward with RLHF_REWARD_TURNS gets
// everything after the prompt as the response, and also the conversation. Any other reward gets the
// last turn as the response, and everything before it as the prompt.
#ifndef RLHF_HOST_SAMPLE_TURN_TEXTS_H
#define RLHF_HOST_SAMPLE_TURN_TEXTS_H

#include "batch/rows.h"
#include "tokenizer/tokenizer.h"

// All texts are owned. Zero-initialize; release with rlhf__turn_texts_finish, even after a failure.
struct rlhf__turn_texts {
    char *before;   // the prompt and everything up to the last turn
    char *after;    // everything after the prompt, up to where scoring ends
    char *messages; // the conversation as a JSON list of {"role", "content"}
    size_t before_len, after_len, messages_len;
    int32_t last; // index of the last turn's first token within the row
};

// Make the texts of row i. The first `len` tokens of the row, including the prompt, are scored.
// `response` is the text of the last turn, as rewards get it. The role is "assistant" for turns of
// the policy, and "user" for the prompt and for tokens that the policy did not write. Errors:
// RLHF_E_NOMEM. [main]
rlhf_status rlhf__turn_texts_init(struct rlhf__turn_texts *, const struct rlhf__tokenizer *,
                                  const struct rlhf__rows *e, uint32_t i, int32_t len,
                                  rlhf_str prompt, rlhf_str response, struct rlhf__error *err);
void rlhf__turn_texts_finish(struct rlhf__turn_texts *); // accepts a zeroed struct [any]

#endif
