// model.h: a model in a role (policy, reference, classifier), opened from a Hugging Face directory.
// It consists of a plugin instance, its parameters and its tokenizer.
//
// This file opens and checks the directory, fills the parameters (parameters.h) and turns the
// plugin's failures into host errors. It does not know algorithms, optimizers or runs.
#ifndef RLHF_HOST_MODEL_MODEL_H
#define RLHF_HOST_MODEL_MODEL_H

#include "estimate/memory_plan.h"
#include "model/compute.h"
#include "plugin/services.h"
#include "tokenizer/tokenizer.h"
#include "weights/hf_dir.h"
#include "weights/peft.h"

#include <rlhf/model.h>

#include <jansson.h>

#define RLHF__MICROBATCH_TOKENS 4096 // default for forward passes without gradients

// ---- end tokens ----

#define RLHF__ENDS_MAX  63 // of a model
#define RLHF__STOPS_MAX 32 // that a request adds to them

// A member of config.json. If it is false, end tokens do not end this model's responses in a run,
// unless sampling.stop_at_eos is true. It is false for the default policy.
#define RLHF__STOP_AT_EOS_KEY "rlhf_stop_at_eos"

struct rlhf__ends {
    int32_t n;
    int32_t id[RLHF__ENDS_MAX + RLHF__STOPS_MAX]; // token ids, without duplicates
    int32_t goes_on; // 1: RLHF__STOP_AT_EOS_KEY of config.json is false
};

// Collects the end tokens: the EOS token of `tok`, the tokens in eos_token_id of `config` and, if
// the file exists, those in eos_token_id of DIR/generation_config.json. eos_token_id is an integer,
// a list of integers, or null. Ids that `tok` does not have are left out, because small configs
// often keep the ids of the large model that they were made from. Errors: RLHF_E_INVALID (another
// type of value, invalid JSON, more than RLHF__ENDS_MAX ids, a value of RLHF__STOP_AT_EOS_KEY that
// is neither true nor false), RLHF_E_IO. [main]
rlhf_status rlhf__ends_read(const char *dir, const json_t *config,
                            const struct rlhf__tokenizer *tok, struct rlhf__ends *out,
                            struct rlhf__error *err);

// Returns 1 if `id` is one of the end tokens in `ends`. If `ends` is NULL, returns 0. [any]
int rlhf__ends_has(const struct rlhf__ends *ends, int32_t id);

// Everything that is needed to open models; shared by all models of a process.
struct rlhf__model_env {
    const rlhf_compute *compute;
    struct rlhf__plugins *plugins;
    struct rlhf__services *services;
    int32_t dtype;     // activation dtype, RLHF_F32 or RLHF_BF16
    int32_t recompute; // enum rlhf_recompute, for models that are trained
    uint64_t seed;     // for parameters that are drawn at random
    struct rlhf__free_memory device_memory;
    // If not NULL, rlhf__model_open opens models on this plan, which only counts their memory.
    // rlhf__model_load later loads them for use.
    struct rlhf__memory_plan *memory_plan;
    // A model with an adapter, or NULL. Models that are opened later from the same directory share
    // its trunk and LM head (rlhf_model_open.base), unless they train a trunk.
    struct rlhf__model *shared;
    int32_t unchecked; // 1: free memory is not checked (model/free_memory.h)
    int32_t threads;   // threads that draw random parameters; 0 = one for each processor
    // 1: quantised weights are read as f32, also those of frozen models (model/quantised.h)
    int32_t dequantize, reserved;
};

enum rlhf__model_start {
    RLHF__START_WEIGHTS = 0, // DIR/model.safetensors; must have the score head, if there is one
    RLHF__START_HEADS = 1,   // the same, but a missing score head is drawn at random
    RLHF__START_RANDOM = 2,  // all parameters are drawn at random; no weights are read
    RLHF__START_EMPTY = 3    // all are 0; the caller then copies another model's
};

// The low-rank adapter to open a model with. Strings are borrowed while the model is opened. If all
// members are 0, there is no adapter, unless the model's directory is itself a PEFT directory.
struct rlhf__model_adapter {
    const char *dir; // PEFT directory to start from; NULL or "": a new adapter is drawn
    const char *targets;
    double alpha;
    int32_t rank; // rank of a new adapter; 0: none
};

struct rlhf__model_spec {
    // A directory with config.json, tokenizer files and weights, or a PEFT directory, which names
    // its base. If `dir` is NULL or "", adapter.dir names the base.
    const char *dir;
    struct rlhf__model_adapter adapter;
    const char *role;   // for messages: "policy", "reference", "classifier"; not copied
    int32_t start;      // enum rlhf__model_start
    int32_t trainable;  // 1: gradients are needed
    int32_t n_labels;   // outputs of the score head; 0: no such head; -1: as in config.json
    int32_t pooling;    // enum rlhf_pool of the score head; 0: as in config.json
    int32_t value_kind; // enum rlhf_value_kind
    int32_t value_init; // enum rlhf_value_init
    int32_t value_detach;
    int32_t score_init; // enum rlhf_score_init: how a score head is drawn
    // 1: the weights never change after they are filled. The plugin need not keep values that it
    // has packed; any later access to these values fails with RLHF_E_INTERNAL. rlhf__model_open
    // does the first refresh. With RLHF__START_EMPTY, rlhf__params_copy does it instead.
    int32_t frozen;
    // 1: sampling and log-probs use only ids that have a token; 0: they use all rows of the
    // embedding, as in transformers.
    int32_t tokens_only;
    int32_t moments;  // values that the optimizer keeps per parameter, for model/free_memory.h
    int32_t language; // 1: fail before weights are read if the model lacks a language head
};

struct rlhf__model {
    const struct rlhf__model_env *env;
    const rlhf_compute *compute;
    struct rlhf__instance *instance;
    const rlhf_model_ops *ops;
    void *self;
    char *dir;      // directory of the weights (the base's); absolute if it can be resolved
    char *text_dir; // directory of the tokenizer: the adapter's if it has the files, else `dir`
    struct rlhf__peft peft; // rank 0: no adapter
    char base_sha256[65];   // of the config and weights in `dir`; "": not computed
    int64_t base_bytes;     // size of these files
    // The model whose trunk this model shares, or NULL. This model is counted in base->users.
    struct rlhf__model *base;
    // this model's instance on the memory plan, kept while other models share it
    struct rlhf__instance *was;
    // 1 for the owner, plus 1 for each model that has this model as its base.
    int32_t users;
    // locks on the directories of this model and its adapter, held until the model is filled
    // (rlhf__folder_hold); -1 = not held
    int held[2];
    const char *role;
    json_t *config;             // config.json as read
    struct rlhf__labels labels; // n = 0 without a score head
    struct rlhf__tokenizer *tok;
    struct rlhf__ends ends; // empty unless the model can generate text
    rlhf_model_info info;
    rlhf_param *params; // [n_tensors]
    uint32_t n_tensors;
    int32_t n_labels, pooling, trainable;
    int32_t frozen;
    struct rlhf__model_spec spec; // the spec that the model was opened with; spec.dir is `dir`
    int32_t planned;              // 1: on the memory plan; parameters are not allocated
};

// Open, check and fill a model. The caller owns *out; free with rlhf__model_close. Errors, with the
// file and the field: RLHF_E_INVALID (directory, config, weights, or a tokenizer that does not fit
// the vocabulary), RLHF_E_IO, RLHF_E_NOMEM, and those of the plugin. [main]
rlhf_status rlhf__model_open(const struct rlhf__model_env *, const struct rlhf__model_spec *,
                             struct rlhf__model **out, struct rlhf__error *err);
void rlhf__model_close(struct rlhf__model *); // NULL allowed [main]

// Release m's locks on its directories, so that the directories may be pruned. [main]
void rlhf__model_let_go(struct rlhf__model *m);

// Load a model that is on the memory plan. *m keeps its address, but compute, params, ops and info
// change. Does nothing if the model is already loaded. Errors: those of rlhf__model_open. [main]
rlhf_status rlhf__model_load(struct rlhf__model *m, struct rlhf__error *err);

// Set *out to the peak memory of opening a model like m, whose config has been read. Allocates
// nothing. [main]
rlhf_status rlhf__model_weigh(const struct rlhf__model *m, struct rlhf__uses *out,
                              struct rlhf__error *err);

// Returns the number of tokens in a microbatch of m, see rlhf__compute_microbatch. [any]
int64_t rlhf__model_microbatch(const struct rlhf__model *m, int64_t configured);

// Returns 1 if this config.json describes a sequence classifier. [any]
int rlhf__model_is_classifier(const json_t *config);

// Reject a classifier or a reward model, because its training has not preserved the language head.
// Reads only config.json. Errors: RLHF_E_INVALID. [any]
rlhf_status rlhf__model_has_language(const struct rlhf__model *, struct rlhf__error *err);

// Reject classifiers and reward models, and also encoders, which cannot generate text. Errors:
// RLHF_E_INVALID. [any]
rlhf_status rlhf__model_writes(const struct rlhf__model *, struct rlhf__error *err);

// Reject a model that does not support rlhf_batch.turn (who wrote a token). The error names the
// model and its role. rlhf__model_forward calls this for rows with turns. Errors:
// RLHF_E_UNSUPPORTED. [any]
rlhf_status rlhf__model_knows_turns(const struct rlhf__model *, struct rlhf__error *err);

// Call the plugin's function of the same name. Shapes are as in rlhf/model.h. _forward_kept also
// checks that the plugin does not write past the end of an array. RLHF__TAIL bytes must follow each
// array in `out` that it writes (supervise/tail.h). [step]
rlhf_status rlhf__model_forward(const struct rlhf__model *, const rlhf_batch *,
                                const rlhf_forward *, const rlhf_heads *out,
                                struct rlhf__error *err);
rlhf_status rlhf__model_forward_kept(const struct rlhf__model *, const rlhf_batch *,
                                     const rlhf_forward *, const rlhf_heads *out,
                                     struct rlhf__error *err);
rlhf_status rlhf__model_backward(const struct rlhf__model *, const rlhf_batch *,
                                 const rlhf_forward *, const rlhf_heads *grad,
                                 struct rlhf__error *err);
rlhf_status rlhf__model_refresh(const struct rlhf__model *, struct rlhf__error *err);

// Returns the instance of m's compute backend, for messages. Returns NULL if the instance is not
// known, e.g. on the memory plan. [any]
const struct rlhf__instance *rlhf__model_kernels(const struct rlhf__model *);

// Fill m->params from the plugin. [main]
rlhf_status rlhf__model_list_params(const struct rlhf__model *, struct rlhf__error *err);

// Open a KV cache for n_slots sequences of max_len tokens. [step]
rlhf_status rlhf__model_gen_open(const struct rlhf__model *, uint32_t n_slots, uint32_t max_len,
                                 rlhf_gen **out, struct rlhf__error *err);
// RLHF__TAIL bytes must follow the arrays that the step writes: next, logp and support. [step]
rlhf_status rlhf__model_gen_step(const struct rlhf__model *, rlhf_gen *, const rlhf_gen_step *,
                                 struct rlhf__error *err);
void rlhf__model_gen_close(const struct rlhf__model *, rlhf_gen *); // NULL allowed

// Let m release memory that it keeps only for speed (trim() of rlhf_model_ops). Call this if m will
// not be used for a while. Does nothing if m is NULL, or if the backend records calls, because
// recorded buffers must keep their addresses. No session may be open. [step]
void rlhf__model_trim(const struct rlhf__model *);

#endif
