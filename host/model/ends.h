// ends.h: the end tokens of a model. Chat models have several, which three files name.
#ifndef RLHF_HOST_ENDS_H
#define RLHF_HOST_ENDS_H

#include "text/tokenizer.h"

#include <jansson.h>

#define RLHF__ENDS_MAX 63

// A member of config.json. false: a run does not end responses of this model at end tokens, unless
// sampling.stop_at_eos is true. The default policy has it.
#define RLHF__STOP_AT_EOS_KEY "rlhf_stop_at_eos"

struct rlhf__ends {
    int32_t n;
    int32_t id[RLHF__ENDS_MAX]; // tokens of the tokenizer, each once
    int32_t goes_on;            // 1: RLHF__STOP_AT_EOS_KEY of config.json is false
};

// Collects the end token of tok, and eos_token_id of config and of DIR/generation_config.json if it
// exists: an integer, a list of integers, or null. Ids that tok does not have are left out: small
// configs often keep the ids of the large model they were made from. Errors: RLHF_E_INVALID
// (another value, invalid JSON, more than RLHF__ENDS_MAX, RLHF__STOP_AT_EOS_KEY neither true nor
// false), RLHF_E_IO. [main]
rlhf_status rlhf__ends_read(const char *dir, const json_t *config,
                            const struct rlhf__tokenizer *tok, struct rlhf__ends *out,
                            struct rlhf__error *err);

// 1 if id is one of them; NULL: 0. [any]
int rlhf__ends_has(const struct rlhf__ends *ends, int32_t id);

#endif
