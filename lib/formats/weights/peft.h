// peft.h: a LoRA directory in PEFT's format. Reads, checks and writes adapter_config.json, and maps
// the tensor names of adapter_model.safetensors.
//
// Only adapters that compute W x + scale * B (A x) on linear layers are supported. Any other config
// is refused, because reading only a part of an adapter would give a different adapter. The message
// has the field that is not supported, and its value.
//
// This file does not know models. The code that opens a model checks that the adapted layers exist.
#ifndef RLHF_FORMATS_WEIGHTS_PEFT_H
#define RLHF_FORMATS_WEIGHTS_PEFT_H

#include "base/file.h"
#include "base/folder.h"
#include "weights/safetensors.h"

#include <jansson.h>

#define RLHF__PEFT_CONFIG   "adapter_config.json"
#define RLHF__PEFT_WEIGHTS  "adapter_model.safetensors"
#define RLHF__PEFT_PREFIX   "base_model.model." // of each tensor's name: PEFT wraps the model
#define RLHF__PEFT_RANK_MAX 65536

// Zero-initialize; release with rlhf__peft_finish, even after a failure. If `rank` is 0, there is
// no adapter.
struct rlhf__peft {
    char *dir;     // absolute path that it was read from; NULL: made from settings
    char *base;    // base_model_name_or_path; NULL: missing
    json_t *named; // target_modules as read or as set: a list of names, or a string
    char **target; // [n_targets] for rlhf_adapter: the names, or the modules in the file
    uint32_t n_targets;
    int32_t rank;
    int32_t rslora; // 1: scaled by alpha / sqrt(rank) (Kalajdzievski 2023) instead of alpha / rank
    int32_t scores; // 1: task_type is SEQ_CLS, so there is a score head
    double alpha;   // lora_alpha
    double dropout; // lora_dropout used in its training; not applied here
};

// 1 if `dir` contains an adapter_config.json. [any]
int rlhf__peft_is(const char *dir);

// Read DIR/adapter_config.json. The tensor names in DIR/adapter_model.safetensors show which
// modules have an adapter. Errors: RLHF_E_INVALID (an invalid file or field; an A tensor without a
// B tensor, or the reverse; an A and a B of different rank), RLHF_E_UNSUPPORTED (a feature that we
// do not support; the message has the field and its value), RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__peft_read(const char *dir, struct rlhf__peft *out, struct rlhf__error *err);

// Make a new adapter. `rank` must be at least 1. If `alpha` is 0, it becomes twice the rank.
// `targets` are names separated by commas. Errors: RLHF_E_INVALID (an empty name), RLHF_E_NOMEM.
// [main]
rlhf_status rlhf__peft_make(int32_t rank, double alpha, const char *targets, struct rlhf__peft *out,
                            struct rlhf__error *err);

void rlhf__peft_finish(struct rlhf__peft *); // [any]

// The scale by which B (A x) is multiplied. [any]
double rlhf__peft_scale(const struct rlhf__peft *);

// Set `out` to the absolute path of the base model's directory, which the adapter names. A relative
// name is first looked up in the adapter's directory, so that a base next to the adapter is found
// from any working directory. Then it is looked up in the working directory, as PEFT does. Errors:
// RLHF_E_INVALID (the adapter does not name a base, or the base does not exist). [main]
rlhf_status rlhf__peft_base(const struct rlhf__peft *, char out[RLHF__PATH_CAP],
                            struct rlhf__error *err);

// The parts of a written config that depend on the model.
struct rlhf__peft_written {
    const char *base;         // base_model_name_or_path
    const char *const *saved; // [n_saved] modules_to_save, for a score head
    const char *const *leaf;  // [n_leaf] the modules that "all-linear" means
    size_t n_saved, n_leaf;
    int32_t in_out; // fan_in_fan_out: the base stores matrices as [inputs, outputs] (GPT-2)
};
rlhf_status rlhf__peft_write(const struct rlhf__peft *, const struct rlhf__peft_written *,
                             const struct rlhf__folder *dir, struct rlhf__error *err); // [main]

// Which part of a module a tensor of adapter_model.safetensors is.
enum rlhf__peft_part { RLHF__PEFT_A = 0, RLHF__PEFT_B = 1, RLHF__PEFT_HEAD = 2 };
// Find the module that a tensor belongs to. Sets *part to an enum rlhf__peft_part. *module points
// to the module's name inside `name`, such as "model.layers.0.self_attn.q_proj", and *n is its
// length. For a head, *module points to the parameter's name, "score.weight". Errors:
// RLHF_E_UNSUPPORTED (any other tensor). [any]
rlhf_status rlhf__peft_tensor_name(const char *file, const char *name, const char **module,
                                   size_t *n, int32_t *part, struct rlhf__error *err);

#endif
