// parameters.h: filling, copying and writing the parameters of a model, through rlhf_param only.
#ifndef RLHF_HOST_PARAMETERS_H
#define RLHF_HOST_PARAMETERS_H

#include "base/folder.h"
#include "model/model.h"

#define RLHF__PARAM_CHUNK (1 << 18) // floats that are read or written at once: 1 MiB of host memory

// Elements of a parameter. [any]
int64_t rlhf__param_count(const rlhf_param *p);

// RLHF_E_INTERNAL when p, a parameter of m, has no values any more (a frozen model's). All
// functions below that read or write values check it. [any]
rlhf_status rlhf__param_check(const struct rlhf__model *m, const rlhf_param *p,
                              struct rlhf__error *err);

// Read DIR/model.safetensors into trunk and score parameters, names tried with and without the
// plugin's base_prefix, shapes checked. Other tensors of the file are refused by name, unless they
// may be left (check_surplus). Of a tied LM head one copy is enough, under either name. Value
// parameters come from DIR/state/value_head.safetensors when that holds a head of the same kind,
// else they are drawn. A score head that is absent is drawn when draw_score is set, else an error.
// An adapter, with the score head beside it, comes from its directory, or is drawn where it has
// none. Does not refresh. [main]
rlhf_status rlhf__params_read(struct rlhf__model *m, int draw_score, struct rlhf__error *err);

// What rlhf__params_read would say of names and shapes; nothing is read, m may be on paper. [main]
rlhf_status rlhf__params_check(struct rlhf__model *m, int draw_score, struct rlhf__error *err);

// Read every parameter of `group` (enum rlhf_param_group; -1 = all) from one file; all must be
// there. [main]
rlhf_status rlhf__params_read_file(struct rlhf__model *m, const char *path, int32_t group,
                                   struct rlhf__error *err);

// Read what RLHF__PART_MODEL or RLHF__PART_PEFT wrote. [main]
rlhf_status rlhf__params_read_back(struct rlhf__model *m, const char *path,
                                   struct rlhf__error *err);

// Draw the parameters of a group (-1 = all) as their init says, each from the stream
// "init:<name>" of env->seed. [main]
rlhf_status rlhf__params_draw(struct rlhf__model *m, int32_t group, struct rlhf__error *err);

// dst's parameters = src's, matched by name; parameters that src lacks are left alone when they are
// heads. Of a dst with an adapter the trunk, which is the same base's, stays. Refreshes dst. [step]
rlhf_status rlhf__params_copy(struct rlhf__model *dst, const struct rlhf__model *src,
                              struct rlhf__error *err);

// Which parameters a file gets.
enum rlhf__params_part {
    RLHF__PART_MODEL =
        0, // trunk and score: what transformers reads; with an adapter that and score
    RLHF__PART_VALUE = 1, // the value head
    RLHF__PART_PEFT = 2   // adapter and score, named as PEFT names them
};

// 1 when the model has parameters of that part. [any]
int rlhf__params_has(const struct rlhf__model *m, int32_t part);

// Write a part to the safetensors file `name` in a folder (NULL: name is a path) as f32 or bf16
// (RLHF_F32, RLHF_BF16). [main]
rlhf_status rlhf__params_write(const struct rlhf__model *m, int32_t part, int32_t dtype,
                               const struct rlhf__folder *in, const char *name,
                               struct rlhf__error *err);

#endif
