// inputs.h: the files that a run reads and does not store in its checkpoints: rows, prompts and
// frozen models.
//
// A list of inputs is a JSON array with an object {"setting", "path", "bytes", "sha256"} for each
// file or model directory. manifest.json stores this array as its member "inputs".
#ifndef RLHF_HOST_KEEP_INPUTS_H
#define RLHF_HOST_KEEP_INPUTS_H

#include "base/buf.h"
#include "base/error.h"

#include <jansson.h>

// Append a regular file to the list. A file that can be read only once, such as a pipe, is skipped.
// Errors: RLHF_E_IO, RLHF_E_NOMEM. [any]
rlhf_status rlhf__inputs_add_file(json_t *list, const char *setting, const char *path,
                                  struct rlhf__error *err);

// Append a model directory. One checksum covers the names, sizes and bytes of config.json, the
// tokenizer's files and, if `weights` is set, the weight files. Of a file that is larger than 64
// MiB, only 64 evenly spaced pieces of 64 KiB each are read. [any]
rlhf_status rlhf__inputs_add_model(json_t *list, const char *setting, const char *dir, int weights,
                                   struct rlhf__error *err);

// Compare every input in `now` with its counterpart in `before`, i.e. the input of the same setting
// at the same position among that setting's inputs. If an input differs or lacks a counterpart,
// append "SETTING PATH (FIELD x is now y)". [any]
void rlhf__inputs_compare(const json_t *before, const json_t *now, struct rlhf__buf *out);

// Append "SETTING PATH" for every input in `now` that is outside the directory `run`, which must be
// a path without links. [any]
void rlhf__inputs_outside(const json_t *now, const char *run, struct rlhf__buf *out);

#endif
