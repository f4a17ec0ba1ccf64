// tokenizer_config.h: reads tokenizer_config.json and special_tokens_map.json. If tokenizer.json
// exists, the ids in these files must agree with it. Internal to text/.
#ifndef RLHF_FORMATS_TOKENIZER_TOKENIZER_CONFIG_H
#define RLHF_FORMATS_TOKENIZER_TOKENIZER_CONFIG_H

#include "tokenizer/tokenizer.h"

#include <jansson.h>

// The prefix that tokenizer.json adds to a text before the text is split.
enum rlhf__prefix {
    RLHF__PREFIX_NONE,
    RLHF__PREFIX_SPACE,  // ByteLevel with add_prefix_space, or a normalizer that prepends
    RLHF__PREFIX_ALWAYS, // Metaspace with this prepend_scheme
    RLHF__PREFIX_FIRST   // Metaspace with this prepend_scheme
};

// The prefix of a tokenizer.json. [main]
int32_t rlhf__tokenizer_prefix(const json_t *file);

// Returns the member `key` (such as "eos_token") of `map` (special_tokens_map.json) or of `config`
// (tokenizer_config.json), or NULL if both lack it. `map` and `config` may be NULL. Borrowed.
//
// The precedence is that of transformers (PreTrainedTokenizerBase._from_pretrained). If `config`
// has an added_tokens_decoder, `map` is ignored. Otherwise every member of `map`, even a null,
// overrides the same member of `config`. [any]
const json_t *rlhf__special_said(const json_t *config, const json_t *map, const char *key);

#endif
