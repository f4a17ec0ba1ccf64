// tokenizer_config.h: what tokenizer_config.json says beyond which tokens have which roles.
//
// What it is not: beside a tokenizer.json it decides nothing about ids; what it says must be what
// tokenizer.json says. Internal to text/.
#ifndef RLHF_HOST_TEXT_TOKENIZER_CONFIG_H
#define RLHF_HOST_TEXT_TOKENIZER_CONFIG_H

#include "text/tokenizer.h"

#include <jansson.h>

// Whose special tokens are usual, where no file names them.
enum rlhf__family {
    RLHF__FAMILY_GPT2, // and what has no class of its own
    RLHF__FAMILY_QWEN2,
    RLHF__FAMILY_LLAMA,
    RLHF__FAMILY_BERT,
    RLHF__FAMILY_N
};
enum rlhf__family rlhf__tokenizer_family(const struct rlhf__tokenizer *tok, const json_t *config);

// The bos token where no file of the tokenizer names one, NULL = none. Beside a tokenizer.json it
// is the one of the class that AutoTokenizer of transformers 5 loads, which depends on
// tokenizer_class and on the model_type of config.json (config, model: NULL allowed); bos_token_id
// of config.json does not count there. [main]
const char *rlhf__tokenizer_usual_bos(const struct rlhf__tokenizer *tok, const json_t *config,
                                      const json_t *model);

// What is put in front of a text before it is cut, as tokenizer.json says it.
enum rlhf__prefix {
    RLHF__PREFIX_NONE,
    RLHF__PREFIX_SPACE,  // a ByteLevel with add_prefix_space, a normaliser that prepends
    RLHF__PREFIX_ALWAYS, // Metaspace with this prepend_scheme
    RLHF__PREFIX_FIRST   // Metaspace with this prepend_scheme
};

// The prefix of a tokenizer.json. [main]
int32_t rlhf__tokenizer_prefix(const json_t *file);

// Take the options of BERT's normaliser; refuse a tokenizer_class that is not there, and
// add_prefix_space and legacy that contradict tokenizer.json. config NULL allowed. Errors:
// RLHF_E_UNSUPPORTED, RLHF_E_INVALID. [main]
rlhf_status rlhf__tokenizer_read_config(struct rlhf__tokenizer *tok, const json_t *config,
                                        struct rlhf__error *err);

// Refuse add_bos_token and add_eos_token that contradict the post_processor of tokenizer.json,
// where some versions of transformers go by the one and some by the other. After the frame is
// known. Errors: RLHF_E_INVALID. [main]
rlhf_status rlhf__tokenizer_check_frame(const struct rlhf__tokenizer *tok, const json_t *config,
                                        struct rlhf__error *err);

#endif
