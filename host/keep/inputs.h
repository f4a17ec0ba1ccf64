// inputs.h: the files that a run reads and does not store in its checkpoints (rows, prompts, frozen
// models), by size and sha256: the list "inputs" of manifest.json.
//
// A list is a JSON array of {"setting", "path", "bytes", "sha256"}, one object per file or model
// directory.
// model directory.
#ifndef RLHF_HOST_INPUTS_H
#define RLHF_HOST_INPUTS_H

#include "base/json.h"

// Append a regular file to the list; a file that can be read only once, such as a pipe, is skipped.
// Errors: RLHF_E_IO, RLHF_E_NOMEM. [any]
rlhf_status rlhf__inputs_add_file(json_t *list, const char *setting, const char *path,
                                  struct rlhf__error *err);

// Append a model directory: config.json, the tokenizer's files and, with `weights`, those of the
// weights, as one checksum over names, sizes and bytes. Of a file above 64 MiB, 64 evenly spaced
// pieces of 64 KiB are read. [any]
rlhf_status rlhf__inputs_add_model(json_t *list, const char *setting, const char *dir, int weights,
                                   struct rlhf__error *err);

// Append "SETTING PATH (FIELD was is now is)" for every input of `now` that differs from its
// counterpart in `before`: the one with the same setting at the same position. An input without a
// counterpart is listed too. [any]
void rlhf__inputs_compare(const json_t *before, const json_t *now, struct rlhf__buf *out);

// Append "SETTING PATH" for every input of `now` outside the directory `run`, which must be a real
// path. [any]
void rlhf__inputs_outside(const json_t *now, const char *run, struct rlhf__buf *out);

#endif
