// model.h: a model in a role (policy, reference, classifier): a plugin instance, its parameters and
// its text side, opened from a Hugging Face directory.
//
// It opens and checks the directory, fills the parameters (parameters.h) and wraps the plugin's
// calls in host errors. It does not know algorithms, optimisers or runs.
#ifndef RLHF_HOST_MODEL_H
#define RLHF_HOST_MODEL_H

#include "model/compute.h"
#include "model/memory_plan.h"
#include "plugin/services.h"
#include "text/tokenizer.h"
#include "weights/hf_dir.h"
#include "weights/peft.h"

#include <rlhf/model.h>

#include <jansson.h>

#define RLHF__MICROBATCH_TOKENS 4096 // of a forward pass without gradients, by default

// ---- end tokens ----

#define RLHF__ENDS_MAX 63

// A member of config.json. false: a run does not end responses of this model at end tokens, unless
// sampling.stop_at_eos is true. The default policy has it.
#define RLHF__STOP_AT_EOS_KEY "rlhf_stop_at_eos"

struct rlhf__ends {
    int32_t n;
    int32_t id[RLHF__ENDS_MAX]; // tokens of the tokenizer, each once
    int32_t goes_on;            // 1: RLHF__STOP_AT_EOS_KEY of config.json is false
};

// Collects the end token of tok, and eos_token_id of config and of DIR/generation_config.json if it
// exists: an integer, a list of integers, or null. Ids that tok does not have are left out: small
// configs often keep the ids of the large model they were made from. Errors: RLHF_E_INVALID
// (another value, invalid JSON, more than RLHF__ENDS_MAX, RLHF__STOP_AT_EOS_KEY not true or false),
// RLHF_E_IO. [main]
rlhf_status rlhf__ends_read(const char *dir, const json_t *config,
                            const struct rlhf__tokenizer *tok, struct rlhf__ends *out,
                            struct rlhf__error *err);

// 1 if id is one of them; NULL: 0. [any]
int rlhf__ends_has(const struct rlhf__ends *ends, int32_t id);

// What models are opened with; shared by all models of a process.
struct rlhf__model_env {
    const rlhf_compute *compute;
    struct rlhf__plugins *plugins;
    struct rlhf__services *services;
    int32_t dtype;     // activation dtype, RLHF_F32 or RLHF_BF16
    int32_t recompute; // enum rlhf_recompute, of models that are trained
    uint64_t seed;     // of parameters that are drawn
    struct rlhf__free_memory device_memory;
    // Not NULL: models are opened on this plan, which counts their memory, until rlhf__model_load.
    struct rlhf__memory_plan *memory_plan;
    // A model with an adapter, or NULL. Models opened later from the same directory use its trunk
    // and LM head (rlhf_model_open.base), unless they train a trunk.
    struct rlhf__model *shared;
    int32_t unchecked; // 1: free memory is not checked (model/free_memory.h)
    int32_t reserved2;
};

enum rlhf__model_start {
    RLHF__START_WEIGHTS = 0, // DIR/model.safetensors; a score head missing there is an error
    RLHF__START_HEADS = 1,   // the same, but a missing score head is drawn
    RLHF__START_RANDOM = 2,  // all parameters are drawn; weights are not read
    RLHF__START_EMPTY = 3    // zeros: the caller copies another model's parameters
};

// The low-rank adapter that a model is opened with; strings are borrowed while it is opened.
// Zeroed: none, unless the model's directory is itself a PEFT directory.
struct rlhf__model_adapter {
    const char *dir; // PEFT directory to start from; NULL or "": a new one of `rank`, drawn
    const char *targets;
    double alpha;
    int32_t rank, reserved; // of a new one; 0: none
};

struct rlhf__model_spec {
    // Holds config.json, tokenizer files and weights; or a PEFT directory, which names its base.
    // NULL or "" with adapter.dir: the base that it names.
    const char *dir;
    struct rlhf__model_adapter adapter;
    const char *role;   // for messages: "policy", "reference", "classifier"; not copied
    int32_t start;      // enum rlhf__model_start
    int32_t trainable;  // gradients wanted
    int32_t n_labels;   // > 0: a score head of that many outputs; 0: none; -1: from config.json
    int32_t pooling;    // enum rlhf_pool of the score head; 0: from config.json
    int32_t value_kind; // enum rlhf_value_kind
    int32_t value_init; // enum rlhf_value_init
    int32_t value_detach;
    int32_t score_init; // enum rlhf_score_init: how a score head is drawn
    // 1: filled once, then only run. The first refresh (here, or by rlhf__params_copy after
    // RLHF__START_EMPTY) releases values that the plugin keeps packed; reading or writing them
    // afterwards is RLHF_E_INTERNAL.
    int32_t frozen;
    // 1: it samples from, and computes log-probs over, the ids that have a token; 0: all rows of
    // the embedding, as in transformers.
    int32_t tokens_only;
    int32_t
        moments; // values that the optimiser will keep of each parameter, for model/free_memory.h
    int32_t language; // 1: needs a language head: rlhf__model_has_language before weights are read
};

struct rlhf__model {
    const struct rlhf__model_env *env;
    const rlhf_compute *compute;
    struct rlhf__instance *instance;
    const rlhf_model_ops *ops;
    void *self;
    char *dir; // the weights' directory, with an adapter the base's; absolute if it can be resolved
    char *text_dir; // the directory of the tokenizer's files: dir, or the adapter's if it has them
    struct rlhf__peft peft;   // rank 0: without an adapter
    char base_sha256[65];     // of dir's config and weights; "": not computed
    int64_t base_bytes;       // their size
    struct rlhf__model *base; // the model whose trunk it uses, or NULL; held
    // the instance that it has on the memory plan, kept while other models use it
    struct rlhf__instance *was;
    int32_t users, reserved1; // 1 for the owner, plus 1 for each model that has it as its base
    // until it is filled: locks of its directory and of its adapter's (rlhf__folder_hold), or -1
    int held[2];
    const char *role;
    json_t *config;             // config.json as read
    struct rlhf__labels labels; // n = 0 without a score head
    struct rlhf__tokenizer *tok;
    struct rlhf__ends ends; // end tokens; none unless it writes
    rlhf_model_info info;
    rlhf_param *params; // [n_tensors]
    uint32_t n_tensors;
    int32_t n_labels, pooling, trainable;
    int32_t frozen;
    struct rlhf__model_spec spec; // what it was opened with; its dir is `dir`
    int32_t
        planned; // 1: on the memory plan; values, gradients and packed weights are not allocated
    int32_t reserved;
};

// Open, check and fill a model. Caller owns *out; free with rlhf__model_close. Errors name the file
// and the field: RLHF_E_INVALID (directory, config, weights, tokenizer that does not fit the
// vocabulary), RLHF_E_IO, RLHF_E_NOMEM, and the plugin's. [main]
rlhf_status rlhf__model_open(const struct rlhf__model_env *, const struct rlhf__model_spec *,
                             struct rlhf__model **out, struct rlhf__error *err);
void rlhf__model_close(struct rlhf__model *); // NULL allowed [main]

// Release the directories that m holds, so that they may be pruned. [main]
void rlhf__model_let_go(struct rlhf__model *m);

// Load a model of the memory plan. *m keeps its address; its compute, params, ops and info change.
// RLHF_OK if it is loaded already. Errors: those of rlhf__model_open. [main]
rlhf_status rlhf__model_load(struct rlhf__model *m, struct rlhf__error *err);

// The peak memory of opening a model like m, whose config is read. Does not allocate it. [main]
rlhf_status rlhf__model_weigh(const struct rlhf__model *m, struct rlhf__uses *out,
                              struct rlhf__error *err);

// 1 if config.json is that of a sequence classifier. [any]
int rlhf__model_is_classifier(const json_t *config);

// Refuse a classifier or a reward model, whose training has not kept a language head. Reads
// config.json only. Errors: RLHF_E_INVALID. [any]
rlhf_status rlhf__model_has_language(const struct rlhf__model *, struct rlhf__error *err);

// Refuse these, and encoders, which cannot write text. Errors: RLHF_E_INVALID. [any]
rlhf_status rlhf__model_writes(const struct rlhf__model *, struct rlhf__error *err);

// Refuse a model that does not know who wrote a token (rlhf_batch.turn), by role and name; forward
// calls it for rows with turns. Errors: RLHF_E_UNSUPPORTED. [any]
rlhf_status rlhf__model_knows_turns(const struct rlhf__model *, struct rlhf__error *err);

// The plugin's calls; shapes as in rlhf/model.h. [step]
rlhf_status rlhf__model_forward(const struct rlhf__model *, const rlhf_batch *,
                                const rlhf_forward *, const rlhf_heads *out,
                                struct rlhf__error *err);
rlhf_status rlhf__model_backward(const struct rlhf__model *, const rlhf_batch *,
                                 const rlhf_forward *, const rlhf_heads *grad,
                                 struct rlhf__error *err);
rlhf_status rlhf__model_refresh(const struct rlhf__model *, struct rlhf__error *err);

// The instance of the backend that it computes with, for messages; NULL: unknown, as on the memory
// plan. [any]
const struct rlhf__instance *rlhf__model_kernels(const struct rlhf__model *);

// Fill params from the plugin; to be repeated after values were allocated or released. [main]
rlhf_status rlhf__model_list_params(const struct rlhf__model *, struct rlhf__error *err);

// A cache of keys and values for n_slots sequences of max_len tokens. [step]
rlhf_status rlhf__model_gen_open(const struct rlhf__model *, uint32_t n_slots, uint32_t max_len,
                                 rlhf_gen **out, struct rlhf__error *err);
rlhf_status rlhf__model_gen_step(const struct rlhf__model *, rlhf_gen *, const rlhf_gen_step *,
                                 struct rlhf__error *err);
void rlhf__model_gen_close(const struct rlhf__model *, rlhf_gen *); // NULL allowed

// Let m release memory that it holds for speed only (trim() of rlhf_model_ops), because it will not
// be used for a while. Does nothing if the backend records calls, whose buffers must keep their
// addresses. NULL allowed. No session may be open. [step]
void rlhf__model_trim(const struct rlhf__model *);

#endif
