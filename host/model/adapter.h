// adapter.h: a model's low-rank adapter (Hu et al. 2021). This code finds the directories from
// which the adapter is read, describes the adapter to the plugin, and writes the PEFT directory.
//
// A PEFT directory can be used instead of a model directory. The model is then the base model that
// the directory names, with the adapter applied. If the adapter has a score head, config.json in
// the same directory describes it (labels, pooling).
#ifndef RLHF_HOST_MODEL_ADAPTER_H
#define RLHF_HOST_MODEL_ADAPTER_H

#include "base/folder.h"
#include "model/model.h"

// From m->spec, sets m->dir, m->text_dir and m->peft. If there is an adapter, also sets the base's
// checksum. Errors: RLHF_E_INVALID (the adapter cannot be read or belongs to another base, or the
// base has changed since state/base.json was written), and those of rlhf__peft_read. [main]
rlhf_status rlhf__adapter_resolve(struct rlhf__model *m, struct rlhf__error *err);

// Lets m share the trunk of the model env->shared. Does nothing if env->shared is NULL, is from
// another directory, or lacks an LM head that m needs. Also does nothing if m trains its trunk or
// starts from random weights. m's config must have been read. [main]
void rlhf__adapter_share(struct rlhf__model *m);

// Stops sharing: gives m its own trunk. [main]
void rlhf__adapter_part(struct rlhf__model *m);

// Sets *out to the config.json of the base in `dir` (a new reference). If the adapter's directory
// has a config.json, the members about the score head and the end tokens are taken from that file.
// Errors: those of rlhf__hf_config_read. [main]
rlhf_status rlhf__adapter_config(const char *dir, const struct rlhf__peft *peft, json_t **out,
                                 struct rlhf__error *err);

// Finds the directories of a model and, if it has one, of its adapter. `dir` is the model's
// directory, or a PEFT directory. If `dir` is "" or NULL, the model is the base that adapter->dir
// names.
// - *p, which must be zeroed, receives the contents of the PEFT files. The caller must release *p
//   even after a failure. Without an adapter, p->dir is NULL.
// - base[RLHF__PATH_CAP] receives the model's directory or, with an adapter, the base model's.
//
// Errors: those of rlhf__adapter_resolve. [main]
rlhf_status rlhf__adapter_find(const char *dir, const struct rlhf__model_adapter *adapter,
                               struct rlhf__peft *p, char *base, struct rlhf__error *err);

// If p's directory is a checkpoint, checks that the base has not changed since the checkpoint was
// written. Errors: RLHF_E_INVALID; the message names both directories. [main]
rlhf_status rlhf__adapter_check_base(const struct rlhf__peft *p, const char *base,
                                     struct rlhf__error *err);

// Returns 1 if `dir` contains tokenizer files. [any]
int rlhf__adapter_has_text(const char *dir);

// If the adapter's own tokenizer `tok` has no chat template, but the base's tokenizer has one, log
// that the base's is left out. [main]
void rlhf__adapter_note_template(const char *adapter, const char *base,
                                 const struct rlhf__tokenizer *tok, struct rlhf__log *log);

// Like rlhf__adapter_config, for a model directory or a PEFT directory. [main]
rlhf_status rlhf__adapter_config_of(const char *dir, const struct rlhf__model_adapter *adapter,
                                    json_t **out, struct rlhf__error *err);

// Returns the description of the adapter for rlhf_model_open. The strings in it are borrowed from
// `peft`. [any]
rlhf_adapter rlhf__adapter_open(const struct rlhf__peft *peft);

// Call this after info(). If m has an adapter or shares a base, checks that the plugin supports
// adapters. Errors: RLHF_E_UNSUPPORTED. [main]
rlhf_status rlhf__adapter_check(const struct rlhf__model *m, struct rlhf__error *err);

// Call this after open() of the model has failed. Puts the model's directories in front of the
// message in *err. Returns the status in *err. [main]
rlhf_status rlhf__adapter_context(const struct rlhf__model *m, struct rlhf__error *err);

// Writes adapter_config.json and adapter_model.safetensors (RLHF_F32 or RLHF_BF16), including the
// score head. If `state` is set, also writes state/base.json; the folder state/ must exist. [main]
rlhf_status rlhf__adapter_write(const struct rlhf__model *m, int32_t dtype, int state,
                                const struct rlhf__folder *dir, struct rlhf__error *err);

// ---- how far an adapter moved ----

// Zero-initialize; release with rlhf__moved_finish.
struct rlhf__moved {
    float *before; // A and B at the start, concatenated; NULL without an adapter
};

// Copy m's adapter, if it has one. Errors: RLHF_E_NOMEM; those of the backend. [step]
rlhf_status rlhf__moved_begin(struct rlhf__moved *, const struct rlhf__model *m,
                              struct rlhf__error *err);

// Returns the bytes that this takes in host memory. [any]
uint64_t rlhf__moved_bytes(const struct rlhf__model *m);

// Sets *norm to the L2 norm of the change in all elements of A and B since rlhf__moved_begin. A NaN
// element counts as a change. Errors: those of the backend. [step]
rlhf_status rlhf__moved_norm(const struct rlhf__moved *, const struct rlhf__model *m, double *norm,
                             struct rlhf__error *err);

void rlhf__moved_finish(struct rlhf__moved *); // accepts a zeroed struct [any]

#endif
