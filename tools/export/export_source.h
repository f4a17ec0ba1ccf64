// export_source.h: the source of `rlhf-host export`: any model directory, or a checkpoint of a run
// together with the run's files.
#ifndef RLHF_TOOLS_EXPORT_EXPORT_SOURCE_H
#define RLHF_TOOLS_EXPORT_EXPORT_SOURCE_H

#include "base/file.h"
#include "base/log.h"

#include "weights/peft.h"

#include <jansson.h>

// Zero-initialize; release with rlhf__export_source_finish, even after a failure.
struct rlhf__export_source {
    char dir[RLHF__PATH_CAP]; // the model directory, absolute, with links resolved
    char run[RLHF__PATH_CAP]; // the model's run, also absolute; "" = not from a run
    // With an adapter, `dir` is the adapter's PEFT directory, and `base` is the model under the
    // adapter. Without an adapter, `base` is "".
    struct rlhf__peft peft;
    char base[RLHF__PATH_CAP];
    char checkpoint[64]; // the checkpoint's name in the run
    int32_t is_best;
    int held;       // 1 + the descriptor that holds `dir` (rlhf__folder_hold); 0: none
    json_t *config; // of the model
    // Files of the run, each NULL if missing.
    struct rlhf__log *log;                         // borrowed
    json_t *settings, *manifest, *state, *metrics; // metrics: those of the checkpoint's phase
};

// Open the source that `given` names: a run, a checkpoint or a model directory. `adapter` is the
// value of --adapter (a PEFT directory that belongs to `given`), or NULL. `choice` is the value of
// --checkpoint. If `choice` is NULL, opens the run's best checkpoint or, if there is none, its last
// checkpoint. Logs which checkpoint of a run this is. Errors: RLHF_E_INVALID, RLHF_E_IO. [main]
rlhf_status rlhf__export_source_open(struct rlhf__export_source *, const char *given,
                                     const char *adapter, const char *choice, struct rlhf__log *log,
                                     struct rlhf__error *err);

void rlhf__export_source_finish(struct rlhf__export_source *); // [main]

// Returns 1 if `path` is the run, the model directory or an adapter's base, or is below one of
// them. `path` must be absolute with links resolved. [any]
int rlhf__export_source_holds(const struct rlhf__export_source *, const char *path);

// Returns the directory of the tokenizer's files: `dir` or, if an adapter lacks such files, `base`.
// [any]
const char *rlhf__export_source_text(const struct rlhf__export_source *);

// Set *out to the JSON object in the file `name` of the model's directory (a new reference), or to
// NULL if the file is missing. Errors: RLHF_E_INVALID (not JSON, not an object), RLHF_E_IO. [main]
rlhf_status rlhf__export_source_json(const struct rlhf__export_source *, const char *name,
                                     json_t **out, struct rlhf__error *err);

// Returns 1 if the source's model can generate, according to `architectures` in its config. [any]
int rlhf__export_source_writes(const struct rlhf__export_source *);

#endif
