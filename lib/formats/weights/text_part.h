// text_part.h: the language model in the directory of a model that has other parts too: Gemma 3
// from 4B on and Qwen3.5 also read images, and Qwen3.5 has layers that predict further tokens. The
// rest of the program sees only the language model: a config and tensors as if it had a directory
// of its own.
#ifndef RLHF_FORMATS_WEIGHTS_TEXT_PART_H
#define RLHF_FORMATS_WEIGHTS_TEXT_PART_H

#include "base/error.h"

#include <jansson.h>

// Returns 1 if the weights of a model with this config may have tensors of other parts: it has a
// language model inside (text_config), or it is a Qwen3.5 for texts alone. [any]
int rlhf__text_part_is(const json_t *config);

// If *config is that of a model with a language model inside, replaces it by the config of the
// language model: text_config with the default values of transformers, and all members outside of
// it that are not about images. These take precedence, because transformers reads them. `dir` is
// only for messages. Errors: RLHF_E_INVALID (text_config is missing), RLHF_E_NOMEM. [any]
rlhf_status rlhf__text_part_config(json_t **config, const char *dir, struct rlhf__error *err);

// Sets *skip and *keep so that a tensor of such a model is called `keep` followed by `name + *skip`
// in the language model. Returns 0 if the tensor belongs to another part. Knows the names of
// transformers before and after 4.52. [any]
int rlhf__text_part_name(const char *name, const char **keep, size_t *skip);

#endif
