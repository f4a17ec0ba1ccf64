// adapter.h: a model's low-rank adapter (Hu et al. 2021): the directories it is read from, its
// description for the plugin, and the PEFT directory it is written to.
//
// Where a model directory is expected, a PEFT directory means the base model that it names with the
// adapter in it. A config.json in the adapter's directory describes a score head: labels, pooling.
#ifndef RLHF_HOST_ADAPTER_H
#define RLHF_HOST_ADAPTER_H

#include "base/folder.h"
#include "model/model.h"

// Sets m->dir, m->text_dir and m->peft from m->spec, and with an adapter the base's checksum.
// Errors: RLHF_E_INVALID (an adapter that cannot be read or belongs to another base, a base that
// has changed since: state/base.json), and those of rlhf__peft_read. [main]
rlhf_status rlhf__adapter_resolve(struct rlhf__model *m, struct rlhf__error *err);

// Let m, whose config has been read, use the trunk of env->shared. That needs the same directory
// for both, and an m that does not change its trunk. [main]
void rlhf__adapter_share(struct rlhf__model *m);

// Stops sharing: gives m its own trunk. [main]
void rlhf__adapter_part(struct rlhf__model *m);

// config.json of the base in dir, with the score head's members of the one in the adapter's
// directory. A new reference. Errors: those of rlhf__hf_config_read. [main]
rlhf_status rlhf__adapter_config(const char *dir, const struct rlhf__peft *peft, json_t **out,
                                 struct rlhf__error *err);

// Resolves the directories of a model in dir with an adapter; dir may be a PEFT directory, and ""
// or NULL means the adapter's own base. Sets *p to what PEFT wrote (zeroed before; the caller
// releases it, also after a failure; p->dir NULL: no adapter), and base[RLHF__PATH_CAP] to the
// model's own directory. Errors: those of rlhf__adapter_resolve. [main]
rlhf_status rlhf__adapter_find(const char *dir, const struct rlhf__model_adapter *adapter,
                               struct rlhf__peft *p, char *base, struct rlhf__error *err);

// If p's directory is a checkpoint, checks that the base has not changed since. Errors:
// RLHF_E_INVALID names both. [main]
rlhf_status rlhf__adapter_check_base(const struct rlhf__peft *p, const char *base,
                                     struct rlhf__error *err);

// 1 when dir has a tokenizer's files. [any]
int rlhf__adapter_has_text(const char *dir);

// The same of a model's directory or a PEFT directory. [main]
rlhf_status rlhf__adapter_config_of(const char *dir, const struct rlhf__model_adapter *adapter,
                                    json_t **out, struct rlhf__error *err);

// The adapter as rlhf_model_open describes it; strings are borrowed from p. [any]
rlhf_adapter rlhf__adapter_open(const struct rlhf__peft *peft);

// After info(): checks that the plugin supports adapters, if m has one or shares a base. Errors:
// RLHF_E_UNSUPPORTED. [main]
rlhf_status rlhf__adapter_check(const struct rlhf__model *m, struct rlhf__error *err);

// Adds to err which model's open() failed. Returns err's code. [main]
rlhf_status rlhf__adapter_context(const struct rlhf__model *m, struct rlhf__error *err);

// Writes adapter_config.json and adapter_model.safetensors (RLHF_F32 or RLHF_BF16), the score head
// included, and, if `state` is set, state/base.json; state/ must exist. [main]
rlhf_status rlhf__adapter_write(const struct rlhf__model *m, int32_t dtype, int state,
                                const struct rlhf__folder *dir, struct rlhf__error *err);

// ---- how far an adapter moved ----

// Zero-initialise; release with rlhf__moved_finish.
struct rlhf__moved {
    float *before; // A and B concatenated; NULL: a model without an adapter
};

// Copy the adapter of m, if it has one. Errors: RLHF_E_NOMEM, those of the backend. [step]
rlhf_status rlhf__moved_begin(struct rlhf__moved *, const struct rlhf__model *m,
                              struct rlhf__error *err);

// *norm = the L2 norm of the change since then, over all elements of A and B. A NaN element counts
// as a change. Errors: those of the backend. [step]
rlhf_status rlhf__moved_norm(const struct rlhf__moved *, const struct rlhf__model *m, double *norm,
                             struct rlhf__error *err);

void rlhf__moved_finish(struct rlhf__moved *); // accepts a zeroed one [any]

#endif
