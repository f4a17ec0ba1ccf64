// quantised.h: a frozen model whose matrices stay quantised, as they are in its GGUF file. The
// plugin asks for the format of each matrix when it is opened, and gets the blocks of the file.
#ifndef RLHF_HOST_MODEL_QUANTISED_H
#define RLHF_HOST_MODEL_QUANTISED_H

#include "model/model.h"
#include "weights/safetensors.h"

// Opens the weights of m as *out if its matrices may stay quantised: m reads a GGUF file, does not
// train its trunk, has its own trunk, and env->dequantize is 0. Otherwise sets *out to NULL. Close
// *out with rlhf__weights_close. Errors: those of rlhf__weights_open. [main]
rlhf_status rlhf__quantised_open(const struct rlhf__model *m, struct rlhf__weights **out,
                                 struct rlhf__error *err);

// Implements rlhf_model_open.format_of. `weights` is a struct rlhf__weights. [main]
int32_t rlhf__quantised_format(void *weights, const char *name);

// Rejects a model that trains a trunk whose weights are quantised, unless env->dequantize is set.
// The message names the settings that help. Errors: RLHF_E_INVALID, and those of
// rlhf__weights_open. [main]
rlhf_status rlhf__quantised_check(const struct rlhf__model *m, struct rlhf__error *err);

// Fills the parameter p, whose format is not f32, from the tensor t of the same shape. Errors:
// RLHF_E_INVALID (t has another format), RLHF_E_NOMEM, and those of the file and of the plugin.
// [main]
rlhf_status rlhf__quantised_fill(const struct rlhf__model *m, const rlhf_param *p,
                                 const struct rlhf__tensor *t, struct rlhf__error *err);

// Fills the parameter p of a model on the memory plan, whose format is not f32, with blocks of
// zeros. Errors: RLHF_E_NOMEM, and those of the plugin. [main]
rlhf_status rlhf__quantised_pass(const struct rlhf__model *m, const rlhf_param *p,
                                 struct rlhf__error *err);

// Logs how many matrices stay quantised, in which formats and how many bytes, and which were
// dequantised. from[i] is the tensor of parameter i, or NULL. Does nothing if all tensors are
// unquantised. [main]
void rlhf__quantised_note(const struct rlhf__model *m, const struct rlhf__tensor *const *from);

#endif
