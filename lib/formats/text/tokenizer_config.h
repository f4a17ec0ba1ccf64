// tokenizer_config.h: what tokenizer_config.json and special_tokens_map.json say.
//
// What it is not: beside a tokenizer.json it decides nothing about ids; what it says must be what
// tokenizer.json says. Internal to text/.
#ifndef RLHF_HOST_TEXT_TOKENIZER_CONFIG_H
#define RLHF_HOST_TEXT_TOKENIZER_CONFIG_H

#include "text/tokenizer.h"

#include <jansson.h>

// What is put in front of a text before it is cut, as tokenizer.json says it.
enum rlhf__prefix {
    RLHF__PREFIX_NONE,
    RLHF__PREFIX_SPACE,  // a ByteLevel with add_prefix_space, a normaliser that prepends
    RLHF__PREFIX_ALWAYS, // Metaspace with this prepend_scheme
    RLHF__PREFIX_FIRST   // Metaspace with this prepend_scheme
};

// The prefix of a tokenizer.json. [main]
int32_t rlhf__tokenizer_prefix(const json_t *file);

// The member `key` ("eos_token") of special_tokens_map.json or of tokenizer_config.json, whichever
// goes before the other as transformers reads them (PreTrainedTokenizerBase._from_pretrained):
// beside an added_tokens_decoder the map is not looked at, without one all that it names, null too,
// is instead of what tokenizer_config.json says. config, map: NULL allowed. NULL when neither has
// it. Borrowed. [any]
const json_t *rlhf__special_said(const json_t *config, const json_t *map, const char *key);

#endif
