// adapter.h: a model's low-rank adapter (Hu et al. 2021): which directories a model with one is
// made of, what its plugin is told, and the PEFT directory that it is written as.
//
// A model's directory that is a PEFT directory stands for the model it names and the adapter in it.
// Labels and what else a score head needs are read from a config.json beside the adapter.
#ifndef RLHF_HOST_ADAPTER_H
#define RLHF_HOST_ADAPTER_H

#include "base/folder.h"
#include "model/model.h"

// m->spec's directories into m->dir, m->text_dir, m->peft, and with an adapter the sum of its base.
// Errors: RLHF_E_INVALID (an adapter that
// cannot be read or is of another base, a base that changed since: state/base.json), and those of
// rlhf__peft_read. [main]
rlhf_status rlhf__adapter_resolve(struct rlhf__model *m, struct rlhf__error *err);

// m, whose config is read, uses the trunk of env->shared where that is of the same directory and m
// changes none of it. [main]
void rlhf__adapter_share(struct rlhf__model *m);

// m no longer uses another model's trunk, but one of its own. [main]
void rlhf__adapter_part(struct rlhf__model *m);

// config.json of the base in dir, with what the one beside the adapter says of a score head. A new
// reference. Errors: those of rlhf__hf_config_read. [main]
rlhf_status rlhf__adapter_config(const char *dir, const struct rlhf__peft *peft, json_t **out,
                                 struct rlhf__error *err);

// The directories of a model in dir ("" or NULL: the adapter's own base), which may be a PEFT
// directory, with an adapter: what PEFT wrote into *p (zeroed; released by the caller, also after a
// failure; p->dir NULL: there is none), the model's own directory into base[RLHF__PATH_CAP]. Errors
// as of rlhf__adapter_resolve. [main]
rlhf_status rlhf__adapter_find(const char *dir, const struct rlhf__model_adapter *adapter,
                               struct rlhf__peft *p, char *base, struct rlhf__error *err);

// The base is what it was when a checkpoint of it was written, if p's directory is one. Errors:
// RLHF_E_INVALID names both. [main]
rlhf_status rlhf__adapter_check_base(const struct rlhf__peft *p, const char *base,
                                     struct rlhf__error *err);

// 1 when dir has a tokenizer's files. [any]
int rlhf__adapter_has_text(const char *dir);

// The same of a model's directory or a PEFT directory. [main]
rlhf_status rlhf__adapter_config_of(const char *dir, const struct rlhf__model_adapter *adapter,
                                    json_t **out, struct rlhf__error *err);

// What the plugin is told; strings are the adapter's. [any]
rlhf_adapter rlhf__adapter_open(const struct rlhf__peft *peft);

// After info(): the plugin knows adapters, where there is one or a base is shared. Errors:
// RLHF_E_UNSUPPORTED. [main]
rlhf_status rlhf__adapter_check(const struct rlhf__model *m, struct rlhf__error *err);

// Say whose the failure of open() is. Returns err's code. [main]
rlhf_status rlhf__adapter_context(const struct rlhf__model *m, struct rlhf__error *err);

// Write adapter_config.json and adapter_model.safetensors (RLHF_F32 or RLHF_BF16), the score head
// among it, and state/base.json when `state` is set; the folder has a state/ then. [main]
rlhf_status rlhf__adapter_write(const struct rlhf__model *m, int32_t dtype, int state,
                                const struct rlhf__folder *dir, struct rlhf__error *err);

#endif
