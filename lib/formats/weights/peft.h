// peft.h: a directory as PEFT writes one for LoRA: adapter_config.json, read, checked and written,
// and what the tensors of adapter_model.safetensors are called.
//
// A config that asks for more than W x + scale * B (A x) on linear layers is refused by the field's
// name and value: an adapter that is read in part is another adapter. It knows no models; whether
// the layers exist is for who opens one.
#ifndef RLHF_HOST_WEIGHTS_PEFT_H
#define RLHF_HOST_WEIGHTS_PEFT_H

#include "base/file.h"
#include "base/folder.h"
#include "weights/safetensors.h"

#include <jansson.h>

#define RLHF__PEFT_CONFIG   "adapter_config.json"
#define RLHF__PEFT_WEIGHTS  "adapter_model.safetensors"
#define RLHF__PEFT_PREFIX   "base_model.model." // of each tensor: PEFT's wrapping of the model
#define RLHF__PEFT_RANK_MAX 65536

// Zero-initialise; release with rlhf__peft_finish, also after a failure. rank 0: no adapter.
struct rlhf__peft {
    char *dir;     // it was read from, absolute; NULL: made from settings
    char *base;    // base_model_name_or_path; NULL: not said
    json_t *named; // target_modules as read or set: a list of names, or a string
    char **target; // [n_targets] what rlhf_adapter takes: names, or modules that the file has
    uint32_t n_targets;
    int32_t rank;
    int32_t rslora; // 1: scaled by alpha / sqrt(rank) (Kalajdzievski 2023), not alpha / rank
    int32_t scores; // 1: task_type is SEQ_CLS: a score head belongs to it
    double alpha;   // lora_alpha
    double dropout; // lora_dropout it was trained with, which is not done here
};

// 1 when dir holds an adapter_config.json. [any]
int rlhf__peft_is(const char *dir);

// Read DIR/adapter_config.json, and from the names in DIR/adapter_model.safetensors which modules
// have an adapter. Errors: RLHF_E_INVALID (files, fields; tensors without their pair, or with
// another rank), RLHF_E_UNSUPPORTED (features, by name and value), RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__peft_read(const char *dir, struct rlhf__peft *out, struct rlhf__error *err);

// One that begins: rank >= 1, alpha (0: twice the rank), targets with commas between. Errors:
// RLHF_E_INVALID (an empty name), RLHF_E_NOMEM. [main]
rlhf_status rlhf__peft_make(int32_t rank, double alpha, const char *targets, struct rlhf__peft *out,
                            struct rlhf__error *err);

void rlhf__peft_finish(struct rlhf__peft *); // [any]

// What B (A x) is multiplied by. [any]
double rlhf__peft_scale(const struct rlhf__peft *);

// The directory of the base that it says, absolute, where there is one. A relative name is taken
// from the adapter's own directory, so that what lies beside it is its base wherever the program
// stands, and only then from where the program stands, which is all that PEFT knows. Errors:
// RLHF_E_INVALID: it says none, or none that is here. [main]
rlhf_status rlhf__peft_base(const struct rlhf__peft *, char out[RLHF__PATH_CAP],
                            struct rlhf__error *err);

// What a written config says beside the adapter's own numbers.
struct rlhf__peft_written {
    const char *base;         // base_model_name_or_path
    const char *const *saved; // [n_saved] modules_to_save: of a score head
    const char *const *leaf;  // [n_leaf] what "all-linear" stands for
    size_t n_saved, n_leaf;
    int32_t in_out; // fan_in_fan_out: the base stores its matrices [inputs, outputs] (GPT-2)
    int32_t reserved;
};
rlhf_status rlhf__peft_write(const struct rlhf__peft *, const struct rlhf__peft_written *,
                             const struct rlhf__folder *dir, struct rlhf__error *err); // [main]

// Where a tensor of adapter_model.safetensors belongs: the module's name and which part of it.
enum rlhf__peft_part { RLHF__PEFT_A = 0, RLHF__PEFT_B = 1, RLHF__PEFT_HEAD = 2 };
// *n bytes of *module, which is borrowed from name: "model.layers.0.self_attn.q_proj", or of a head
// the parameter, "score.weight". RLHF_E_UNSUPPORTED for what is neither. [any]
rlhf_status rlhf__peft_tensor_name(const char *file, const char *name, const char **module,
                                   size_t *n, int32_t *part, struct rlhf__error *err);

#endif
