// tokenizer_class.h: the classes of transformers that tokenizer_config.json may name, and what they
// imply. Internal to text/.
#ifndef RLHF_FORMATS_TOKENIZER_TOKENIZER_CLASS_H
#define RLHF_FORMATS_TOKENIZER_TOKENIZER_CLASS_H

#include "base/error.h"

#include <jansson.h>

struct rlhf__tokenizer;

// The model families. The usual special tokens of a family apply if no file names any.
enum rlhf__tokenizer_family {
    RLHF__FAMILY_GPT2, // also for classes that are not in the list
    RLHF__FAMILY_QWEN2,
    RLHF__FAMILY_LLAMA,
    RLHF__FAMILY_GEMMA,
    RLHF__FAMILY_BERT,
    RLHF__FAMILY_N
};

// In all of these, `config` is tokenizer_config.json and `model` is config.json; each may be NULL.

enum rlhf__tokenizer_family rlhf__tokenizer_family_of(const struct rlhf__tokenizer *tok,
                                                      const json_t *config); // [any]

// Returns the name of the tokenizer class that transformers loads. It may differ from the config's
// tokenizer_class, which may also be missing. [any]
const char *rlhf__tokenizer_loaded_class(const struct rlhf__tokenizer *tok, const json_t *config,
                                         const json_t *model);

// Returns the default bos token of a tokenizer whose files do not name one, or NULL if there is no
// default. The default depends on the tokenizer's class. With a tokenizer.json, the class is the
// one that AutoTokenizer of transformers 5 loads. This class depends on tokenizer_class, and on
// model_type in config.json. The bos_token_id in config.json is ignored. [any]
const char *rlhf__tokenizer_usual_bos(const struct rlhf__tokenizer *tok, const json_t *config,
                                      const json_t *model);

// Refuses an unsupported tokenizer_class. Errors: RLHF_E_UNSUPPORTED. [any]
rlhf_status rlhf__tokenizer_check_class(const struct rlhf__tokenizer *tok, const json_t *config,
                                        struct rlhf__error *err);

#endif
