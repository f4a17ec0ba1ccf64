// special_vars.h: the special tokens that a chat template can write, as variables.
//
// The rules are those of transformers: the tokens that the files name and those that the class of
// the tokenizer implies, not the ids of config.json. Internal to text/.
#ifndef RLHF_FORMATS_TOKENIZER_SPECIAL_VARS_H
#define RLHF_FORMATS_TOKENIZER_SPECIAL_VARS_H

#include <jansson.h>

// Returns {"bos_token": "<s>", ...}, a new reference, or NULL if memory runs out. `config` is
// tokenizer_config.json and `map` special_tokens_map.json; either may be NULL. `name` is the class
// that transformers loads; NULL = unknown. [any]
json_t *rlhf__special_vars(const json_t *config, const json_t *map, const char *name);

#endif
