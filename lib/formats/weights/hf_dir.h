// hf_dir.h: a Hugging Face model directory: config.json, labels, tokenizer files. A GGUF file is
// read as the directory that it can be converted to.
//
// This file does not read weights (safetensors.h does) or tokenizers (tokenizer/tokenizer.h does).
// The model plugin reads the keys of its architecture.
#ifndef RLHF_FORMATS_WEIGHTS_HF_DIR_H
#define RLHF_FORMATS_WEIGHTS_HF_DIR_H

#include "base/folder.h"

#include <jansson.h>
#include <rlhf/compute.h>

// A member of config.json in the checkpoints of a run that began from weights in bf16 or f16: that
// dtype, "bfloat16" or "float16". An export has it unless --dtype names another, and is without
// this member.
#define RLHF__HF_FIRST_DTYPE "rlhf_first_dtype"

// The names of a classifier's classes, by index.
struct rlhf__labels {
    char **name; // [n]
    int32_t n;
};

// Read DIR/config.json, or make the config of a GGUF file (gguf_metadata.h). If the model also
// reads images, *out describes its language model (text_part.h). The caller owns *out
// (json_decref). Errors: RLHF_E_INVALID (a missing directory or file; invalid JSON, with its line;
// JSON that is not an object), RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__hf_config_read(const char *dir, json_t **out, struct rlhf__error *err);

// Get the "model_type" of a config; *out is borrowed from the config. `dir` is only for messages.
// The value may become a part of a file name, so only letters, digits, '_' and '-' are allowed.
// Errors: RLHF_E_INVALID. [any]
rlhf_status rlhf__hf_model_type(const json_t *config, const char *dir, const char **out,
                                struct rlhf__error *err);

// Returns 1 if the output table is the embedding table (tie_word_embeddings). If the config lacks
// tie_word_embeddings, returns transformers' default for the model_type. [any]
int rlhf__hf_tied(const json_t *config);

// Get the labels of a config, which are in id2label {"0": "NEGATIVE", ...}. If id2label is missing,
// the labels are LABEL_0, LABEL_1, ... Their number is then num_labels, or two if num_labels is
// missing as well (as in transformers). Release with rlhf__labels_finish. Errors: RLHF_E_INVALID
// (an index is missing, or a name is not a string), RLHF_E_NOMEM. [any]
rlhf_status rlhf__hf_labels(const json_t *config, const char *dir, struct rlhf__labels *out,
                            struct rlhf__error *err);

// Accepts zeroed labels. [any]
void rlhf__labels_finish(struct rlhf__labels *labels);

// Returns the index of the label with this name, or -1. Without an exact match, takes the first
// label that differs only in the case of ASCII letters. [any]
int32_t rlhf__labels_find(const struct rlhf__labels *labels, const char *name);

// Set id2label, label2id and num_labels of a config. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__hf_set_labels(json_t *config, const struct rlhf__labels *labels,
                                struct rlhf__error *err);

// Set dtype and torch_dtype, if the config has them, to the dtype of the weights file (RLHF_F32,
// RLHF_BF16), because transformers loads the weights in the config's dtype. Errors: RLHF_E_NOMEM.
// [any]
rlhf_status rlhf__hf_set_dtype(json_t *config, int32_t dtype, struct rlhf__error *err);

// Write config.json into `dir` atomically, indented, without changing the order of the keys.
// Errors: RLHF_E_IO. [main]
rlhf_status rlhf__hf_config_write(const struct rlhf__folder *dir, json_t *config,
                                  struct rlhf__error *err);

// Copy the tokenizer's files that exist from the directory `from` to the directory `to`, each
// atomically: vocab.json, merges.txt, vocab.txt, tokenizer.json, tokenizer_config.json,
// special_tokens_map.json, added_tokens.json, tokenizer.model, generation_config.json,
// chat_template.json, chat_template.jinja, and the files in additional_chat_templates/. Errors:
// RLHF_E_IO. [main]
rlhf_status rlhf__hf_copy_tokenizer(const struct rlhf__folder *from, const struct rlhf__folder *to,
                                    struct rlhf__error *err);

// Returns 1 if rlhf__hf_copy_tokenizer copies a file of this name, outside of
// additional_chat_templates/. [any]
int rlhf__hf_copies(const char *name);

#endif
