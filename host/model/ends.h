// ends.h: the tokens that end a text of a model: chat models have several, and three files that
// name them.
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
    int32_t goes_on;            // 1: config.json has RLHF__STOP_AT_EOS_KEY false
};

// The end token of tok, and eos_token_id of config and of DIR/generation_config.json, where there
// is such a file: an integer, a list of them, or null. Ids that are no token of tok are left out:
// many small configs have those of the big model that they were made from. Errors: RLHF_E_INVALID
// (no such value, no JSON, more than RLHF__ENDS_MAX, another RLHF__STOP_AT_EOS_KEY than true or
// false), RLHF_E_IO. [main]
rlhf_status rlhf__ends_read(const char *dir, const json_t *config,
                            const struct rlhf__tokenizer *tok, struct rlhf__ends *out,
                            struct rlhf__error *err);

// 1 when id is one of them; NULL has none. [any]
int rlhf__ends_has(const struct rlhf__ends *ends, int32_t id);

#endif
