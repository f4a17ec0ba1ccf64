// manifest.h: manifest.json of a run: which program, plugins and kernels made it, by version and
// sha256, and what it reads beside its checkpoints; and whether they are the same when it goes on.
#ifndef RLHF_HOST_MANIFEST_H
#define RLHF_HOST_MANIFEST_H

#include "base/folder.h"
#include "base/log.h"
#include "model/compute.h"
#include "model/model.h"

// The code of a run and what it reads; all borrowed.
struct rlhf__manifest {
    const struct rlhf__compute *compute;
    const struct rlhf__model *policy;
    const struct rlhf__plugin *algo, *judge;   // judge NULL = none
    const struct rlhf__plugin *const *rewards; // [n_rewards]
    size_t n_rewards;
    const struct rlhf__plugins *plugins; // every plugin that is open
    json_t *inputs;                      // as keep/inputs.h lists them
};

// Write manifest.json into the run directory: for a new run, or, when code or inputs of a resumed
// one have changed, with what they were under "earlier". [main]
rlhf_status rlhf__manifest_write(const struct rlhf__manifest *m, const struct rlhf__folder *run,
                                 int resumed, struct rlhf__error *err);

// Compare a resumed run's manifest with the code that is open now. Another id, version or sha256,
// or no manifest: RLHF_E_INVALID naming every such file; `name` is what messages call the run.
// [main]
rlhf_status rlhf__manifest_check(const struct rlhf__manifest *m, const struct rlhf__folder *run,
                                 const char *name, struct rlhf__error *err);

// The same of the inputs: another size or sha256, or one that the stored manifest does not list, is
// RLHF_E_INVALID naming every such input; and so is a manifest without a list. [main]
rlhf_status rlhf__manifest_check_inputs(const struct rlhf__manifest *m,
                                        const struct rlhf__folder *run, const char *name,
                                        struct rlhf__error *err);

// Append what of the code that rewards of the run `dir` run (the options that name a file) is not
// now what manifest.json recorded, as rlhf__inputs_compare does; nothing when that cannot be read.
// [main]
void rlhf__manifest_changed_code(const char *dir, struct rlhf__buf *out);

// Warn when the run was computed on another backend than now, or on a GPU by another card, driver
// or library; what is asked for by compute.backend or lies at hand is no change that
// rlhf__manifest_check refuses. [main]
void rlhf__manifest_moved(const struct rlhf__manifest *m, const struct rlhf__folder *run,
                          struct rlhf__log *log);

#endif
