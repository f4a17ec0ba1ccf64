// parameters.h: filling, copying and writing the parameters of a model, through rlhf_param only.
#ifndef RLHF_HOST_PARAMETERS_H
#define RLHF_HOST_PARAMETERS_H

#include "base/folder.h"
#include "model/model.h"

#define RLHF__PARAM_CHUNK (1 << 18) // floats read or written at a time: 1 MiB of host memory

// Elements of a parameter. [any]
int64_t rlhf__param_count(const rlhf_param *p);

// RLHF_E_INTERNAL if the values of p, a parameter of a frozen model m, have been released. All
// functions below that read or write values check it. [any]
rlhf_status rlhf__param_check(const struct rlhf__model *m, const rlhf_param *p,
                              struct rlhf__error *err);

// Read DIR/model.safetensors into trunk and score parameters, by names with or without the plugin's
// base_prefix, and check shapes. Other tensors of the file are an error that names one, unless they
// can be ignored (check_surplus). A tied LM head needs one copy, under either name. Value
// parameters are read from DIR/state/value_head.safetensors if that holds a head of the same kind,
// else drawn. A missing score head is drawn if draw_score is set, else an error. An adapter and
// its score head are read from its directory, or drawn without one. Does not refresh.
// [main]
rlhf_status rlhf__params_read(struct rlhf__model *m, int draw_score, struct rlhf__error *err);

// The errors of rlhf__params_read about names and shapes, without reading values; m may be on a
// memory plan. [main]
rlhf_status rlhf__params_check(struct rlhf__model *m, int draw_score, struct rlhf__error *err);

// Read every parameter of `group` (enum rlhf_param_group; -1 = all) from one file, which must have
// them all. [main]
rlhf_status rlhf__params_read_file(struct rlhf__model *m, const char *path, int32_t group,
                                   struct rlhf__error *err);

// Read a file of RLHF__PART_MODEL or RLHF__PART_PEFT. [main]
rlhf_status rlhf__params_read_back(struct rlhf__model *m, const char *path,
                                   struct rlhf__error *err);

// Draw the parameters of a group (-1 = all) by their init, each from the stream "init:<name>" of
// env->seed. [main]
rlhf_status rlhf__params_draw(struct rlhf__model *m, int32_t group, struct rlhf__error *err);

// Copy src's parameters to dst's of the same names. Heads that src lacks keep their values, and so
// does the trunk of a dst with an adapter, which is of the same base. Refreshes dst. [step]
rlhf_status rlhf__params_copy(struct rlhf__model *dst, const struct rlhf__model *src,
                              struct rlhf__error *err);

// Which parameters a file holds.
enum rlhf__params_part {
    RLHF__PART_MODEL =
        0, // trunk and score, as transformers reads them; with an adapter: adapter and score
    RLHF__PART_VALUE = 1, // the value head
    RLHF__PART_PEFT = 2   // adapter and score, named as PEFT names them
};

// 1 if the model has parameters of that part. [any]
int rlhf__params_has(const struct rlhf__model *m, int32_t part);

// Write a part to the safetensors file `name` in a folder (NULL: name is a path) as f32 or bf16
// (RLHF_F32, RLHF_BF16). [main]
rlhf_status rlhf__params_write(const struct rlhf__model *m, int32_t part, int32_t dtype,
                               const struct rlhf__folder *in, const char *name,
                               struct rlhf__error *err);

#endif
