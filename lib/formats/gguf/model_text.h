// model_text.h: the tokenizer's files of a model, which is a directory or a GGUF file.
#ifndef RLHF_FORMATS_GGUF_MODEL_TEXT_H
#define RLHF_FORMATS_GGUF_MODEL_TEXT_H

#include "base/folder.h"

#include <jansson.h>

// Set *out to the JSON object of a file of the model (a new reference), or NULL if the model lacks
// it. In a directory, that is the file `name`. A GGUF file has a tokenizer.json, a
// tokenizer_config.json and a generation_config.json (gguf_text.h). Errors: RLHF_E_INVALID (not
// JSON, not an object), those of rlhf__gguf_open and gguf_text.h. [main]
rlhf_status rlhf__model_json(const char *model, const char *name, json_t **out,
                             struct rlhf__error *err);

// Returns 1 if the model has the file. [any]
int rlhf__model_has(const char *model, const char *name);

// Write the tokenizer's files of the model into the directory `to`: copies of a directory's
// (rlhf__hf_copy_tokenizer), or those of a GGUF file. Errors: RLHF_E_IO, and those of
// rlhf__model_json. [main]
rlhf_status rlhf__model_copy_text(const char *model, const struct rlhf__folder *to,
                                  struct rlhf__error *err);

#endif
