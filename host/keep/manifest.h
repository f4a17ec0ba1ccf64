// manifest.h: manifest.json of a run: the program, plugins and kernels that made it, by version and
// sha256, and the inputs that are not in its checkpoints. Compares them when the run is resumed.
#ifndef RLHF_HOST_MANIFEST_H
#define RLHF_HOST_MANIFEST_H

#include "base/folder.h"
#include "base/json.h"
#include "base/log.h"
#include "model/compute.h"
#include "model/model.h"

// The code and the inputs of a run; all borrowed.
struct rlhf__manifest {
    const struct rlhf__compute *compute;
    const struct rlhf__model *policy;
    const struct rlhf__plugin *algo, *judge;   // judge NULL = none
    const struct rlhf__plugin *const *rewards; // [n_rewards]
    size_t n_rewards;
    const struct rlhf__plugin *const *sinks; // [n_sinks]; they may change when a run is resumed
    size_t n_sinks;
    const struct rlhf__plugins *plugins; // all open plugins
    json_t *inputs;                      // a list; see below
};

// Write manifest.json to the run directory: for a new run, or, if code or inputs of a resumed one
// have changed, with their earlier state under "earlier". [main]
rlhf_status rlhf__manifest_write(const struct rlhf__manifest *m, const struct rlhf__folder *run,
                                 int resumed, struct rlhf__error *err);

// Compare a resumed run's manifest with the open code. Another id, version or sha256, or a missing
// manifest: RLHF_E_INVALID naming every such file; `name` is the run's name in messages. [main]
rlhf_status rlhf__manifest_check(const struct rlhf__manifest *m, const struct rlhf__folder *run,
                                 const char *name, struct rlhf__error *err);

// The same for the inputs: another size or sha256, or an input that the stored manifest lacks, is
// RLHF_E_INVALID naming every such input; so is a manifest without a list. [main]
rlhf_status rlhf__manifest_check_inputs(const struct rlhf__manifest *m,
                                        const struct rlhf__folder *run, const char *name,
                                        struct rlhf__error *err);

// For the code files that rewards of the run `dir` use (options that name a file): append those
// that differ from manifest.json, in the form of rlhf__inputs_compare. Appends nothing if it cannot
// be read. [main]
void rlhf__manifest_changed_code(const char *dir, struct rlhf__buf *out);

// Warn if the run used another backend than now, or on a GPU another card, driver or library.
// rlhf__manifest_check does not refuse these, because the user asked for them by compute.backend or
// the machine lacks the earlier one. [main]
void rlhf__manifest_moved(const struct rlhf__manifest *m, const struct rlhf__folder *run,
                          struct rlhf__log *log);

// ---- inputs: the files that a run reads and does not store in its checkpoints ----
//
// Rows, prompts and frozen models. A list is a JSON array of {"setting", "path", "bytes",
// "sha256"}, one object per file or model directory: "inputs" of manifest.json.

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
