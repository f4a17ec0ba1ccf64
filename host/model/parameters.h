// parameters.h: fills, copies and writes a model's parameters. It knows them only as rlhf_param.
#ifndef RLHF_HOST_MODEL_PARAMETERS_H
#define RLHF_HOST_MODEL_PARAMETERS_H

#include "base/folder.h"
#include "model/model.h"

#define RLHF__PARAM_CHUNK (1 << 18) // floats read or written at a time: 1 MiB of host memory

// Returns the number of elements of a parameter. [any]
int64_t rlhf__param_count(const rlhf_param *p);

// Returns RLHF_E_INTERNAL if p, a parameter of a frozen model m, has no values, because m keeps
// only a packed copy. All functions below check this before they read values. [any]
rlhf_status rlhf__param_check(const struct rlhf__model *m, const rlhf_param *p,
                              struct rlhf__error *err);

// rlhf__param_begin sets *to to the memory for all values of p, a parameter of m->params, f32.
// Write them, and then call rlhf__param_end. If m keeps only a packed copy, the memory is temporary
// (fill_begin of rlhf_model_ops). Errors: those of rlhf__param_check, if m has been filled before;
// those of the plugin. [step]
rlhf_status rlhf__param_begin(const struct rlhf__model *m, const rlhf_param *p, rlhf_dev *to,
                              struct rlhf__error *err);
rlhf_status rlhf__param_end(const struct rlhf__model *m, const rlhf_param *p,
                            struct rlhf__error *err);

// Calls rlhf__param_begin and rlhf__param_end for all parameters, without writing values. For a
// model on a memory plan. [main]
rlhf_status rlhf__params_pass(const struct rlhf__model *m, struct rlhf__error *err);

// Read DIR/model.safetensors into the trunk and score parameters and check their shapes.
// - Names may lack the plugin's base_prefix. Other tensors in the file are an error unless
//   check_surplus ignores them. If the LM head is tied, the file needs only one of the two tensors.
// - Value parameters come from DIR/state/value_head.safetensors if that file has a value head of
//   the same kind; otherwise they are drawn at random.
// - A missing score head is drawn at random if draw_score is set; otherwise it is an error.
// - An adapter and its score head are read from the adapter's directory. A new adapter and its
//   score head are drawn at random.
//
// Does not refresh the model. [main]
rlhf_status rlhf__params_read(struct rlhf__model *m, int draw_score, struct rlhf__error *err);

// Make the checks of rlhf__params_read on names and shapes, without reading values. Returns the
// error that rlhf__params_read would return. m may be on a memory plan. [main]
rlhf_status rlhf__params_check(struct rlhf__model *m, int draw_score, struct rlhf__error *err);

// Read all parameters of `group` (enum rlhf_param_group; -1 = all) from one file, which must
// contain them all. [main]
rlhf_status rlhf__params_read_file(struct rlhf__model *m, const char *path, int32_t group,
                                   struct rlhf__error *err);

// Read a file that was written as RLHF__PART_MODEL or RLHF__PART_PEFT. [main]
rlhf_status rlhf__params_read_back(struct rlhf__model *m, const char *path,
                                   struct rlhf__error *err);

// Draw the parameters of a group (-1 = all) as their `init` says. Each parameter uses the random
// stream "init:<name>" of env->seed. [main]
rlhf_status rlhf__params_draw(struct rlhf__model *m, int32_t group, struct rlhf__error *err);

// Copy src's parameters to the parameters of dst that have the same names. Heads that src lacks
// keep their values. The models may be on different compute tables. If dst has an adapter, its
// trunk also keeps its values, because both models have the same base. Refreshes dst. [step]
rlhf_status rlhf__params_copy(struct rlhf__model *dst, const struct rlhf__model *src,
                              struct rlhf__error *err);

// The parameters that a file contains.
enum rlhf__params_part {
    RLHF__PART_MODEL =
        0, // trunk and score, as transformers reads them; with an adapter: adapter and score
    RLHF__PART_VALUE = 1, // the value head
    RLHF__PART_PEFT = 2   // adapter and score, named as PEFT names them
};

// Returns 1 if the model has parameters in this part. [any]
int rlhf__params_has(const struct rlhf__model *m, int32_t part);
// Returns the number of elements of this part's parameters. [any]
int64_t rlhf__params_elements(const struct rlhf__model *m, int32_t part);

// Write a part of the parameters (enum rlhf__params_part) as RLHF_F32 or RLHF_BF16 to the
// safetensors file `name` in the folder `in`. If `in` is NULL, `name` is a path. [main]
rlhf_status rlhf__params_write(const struct rlhf__model *m, int32_t part, int32_t dtype,
                               const struct rlhf__folder *in, const char *name,
                               struct rlhf__error *err);

#endif
