// manifest.h: manifest.json of a run. It lists the program, the plugins and the kernels that made
// the run, each with its version and sha256. It also lists the inputs that are not in the run's
// checkpoints. When the run is resumed, the stored lists are compared with the current ones.
#ifndef RLHF_HOST_KEEP_MANIFEST_H
#define RLHF_HOST_KEEP_MANIFEST_H

#include "base/folder.h"
#include "base/json.h"
#include "base/log.h"
#include "model/compute.h"
#include "model/model.h"
#include "team/team_open.h"

// The code and the inputs of a run. All pointers are borrowed.
struct rlhf__manifest {
    const struct rlhf__compute *compute;
    const struct rlhf__model *policy;
    const struct rlhf__plugin *algo, *judge;   // judge: NULL = none
    const struct rlhf__plugin *environment;    // NULL = none
    const struct rlhf__plugin *const *rewards; // [n_rewards]
    size_t n_rewards;
    const struct rlhf__plugin *const *sinks; // [n_sinks]; may change on resuming
    size_t n_sinks;
    const struct rlhf__plugins *plugins;       // all open plugins
    const struct rlhf__collective *collective; // connects the run's processes; NULL = one process
    const struct rlhf__collective *device;     // connects their GPUs as well; NULL = none
    json_t *inputs;                            // a list, see keep/inputs.h
};

// Returns the contents of manifest.json. This is a new reference, or NULL if out of memory. [main]
json_t *rlhf__manifest_json(const struct rlhf__manifest *m);

// Write manifest.json to the run directory. For a resumed run, writes it only if code or inputs
// have changed, and keeps their previous state under "earlier". [main]
rlhf_status rlhf__manifest_write(const struct rlhf__manifest *m, const struct rlhf__folder *run,
                                 int resumed, struct rlhf__error *err);

// Compare a resumed run's manifest with the code that is open now. Errors: RLHF_E_INVALID if the
// manifest is missing, or if an id, a version or a sha256 differs. The message names every file
// that differs. `name` is the run's name in messages. [main]
rlhf_status rlhf__manifest_check(const struct rlhf__manifest *m, const struct rlhf__folder *run,
                                 const char *name, struct rlhf__error *err);

// Compare the stored list of inputs with the current one. Errors: RLHF_E_INVALID if the size or
// sha256 of an input has changed, if an input is not in the stored manifest, or if the stored
// manifest has no list of inputs. The message names every such input. [main]
rlhf_status rlhf__manifest_check_inputs(const struct rlhf__manifest *m,
                                        const struct rlhf__folder *run, const char *name,
                                        struct rlhf__error *err);

// Append to *out, in the format of rlhf__inputs_compare, the run's code files that have changed
// since the file manifest.json in `dir` was written. Code files are the files that options of
// rewards and of the judge name. Appends nothing if manifest.json cannot be read. [main]
void rlhf__manifest_changed_code(const char *dir, struct rlhf__buf *out);

// Warn if the backend or its options differ from those that the run used before. On a GPU, also
// warn if the card, the driver or the library differs. rlhf__manifest_check accepts these changes,
// because either the user asked for them with compute.backend, or the machine lacks what was used
// before. [main]
void rlhf__manifest_moved(const struct rlhf__manifest *m, const struct rlhf__folder *run,
                          struct rlhf__log *log);

#endif
