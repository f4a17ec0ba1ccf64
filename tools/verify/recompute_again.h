// recompute_again.h: computes phases of a finished run once more, from the run's files. Writes the
// results into a folder of the caller, as files of the same form.
#ifndef RLHF_TOOLS_VERIFY_RECOMPUTE_AGAIN_H
#define RLHF_TOOLS_VERIFY_RECOMPUTE_AGAIN_H

#include "base/env.h"
#include "base/folder.h"
#include "feed/recorded.h"

struct rlhf__again {
    const struct rlhf__env *env;
    const char *run, *algo; // algo NULL: as the run's config.json names it
    const char *backend;    // "reference", "cpu", ...
    int64_t threads;        // 0: all cores
    int32_t trust_run;      // 1: code that the run's config.json names may run
    int32_t rewards;        // 1: rewards and the judge are opened, and score again
    int32_t environment;    // 1: the environment is opened, and plays again
    const char *dtype;      // of matrix products; NULL: as the run's config.json says
    const char *arithmetic; // of the run; if it is "v1", the backend cpu uses it
    const char *const *set; // [n_set] further settings, "path=value"
    size_t n_set;
};

// Which phases to compute.
struct rlhf__again_part {
    int64_t from;    // begin at this phase's checkpoint; 0: at the run's beginning
    int64_t phases;  // number of phases
    int32_t samples; // 1: responses are sampled; 0: they come from `rows`
    // 1: the algorithm gets recomputed log-probs of the responses, not those of `rows`.
    int32_t own_logp;
    // The run's recorded rows. If responses are not sampled again, everything about them comes from
    // these rows. If they are sampled again, these rows supply only the scores and environment
    // answers that are not computed again. `rows` is NULL if everything is computed.
    struct rlhf__recorded *rows;
    // Returns 1 if the checkpoint after this phase is wanted.
    int (*keep)(void *arg, int64_t phase);
    void *arg;
};

// How a phase went.
struct rlhf__again_told {
    int32_t samples;     // 1: the algorithm samples, so the phase needs recorded responses
    int32_t lacks_rows;  // 1: responses are not recorded, so nothing was computed
    int32_t reads_start; // 1: the phase begins at a checkpoint; 0: at the run's beginning
};

// Compute the phases. For a single phase, `rows` must be positioned at that phase. Names the
// checkpoints in the folder `out` like a run's checkpoints. If `from` is 0, also writes a
// checkpoint 000000 of the run's beginning. Opens no sinks. Opens rewards, the judge and the
// environment only if struct rlhf__again asks for them. The plugins and inputs
// may differ from the run's; the caller compares them (the line `begin` of the chain in `out`).
// Errors: those of resuming the run, which begin with "verify" in place of "--resume". [main]
rlhf_status rlhf__again(const struct rlhf__again *, const struct rlhf__again_part *,
                        const struct rlhf__folder *out, struct rlhf__again_told *told,
                        struct rlhf__error *err);

#endif
