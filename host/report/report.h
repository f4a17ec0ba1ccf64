// report.h: the outputs of a run: log, progress, metrics, samples and rollouts, and its timers.
#ifndef RLHF_HOST_REPORT_H
#define RLHF_HOST_REPORT_H

#include "config/config.h"
#include "report/metrics.h"
#include "report/progress.h"
#include "report/rollout_log.h"
#include "report/samples.h"
#include "report/sinks.h"
#include "sample/reward_call.h"

#include <stddef.h>

// Time and failures of a run's rewards and judge, in the current phase and in this process. Entries
// in the order of the config's rewards, then the judge's. Zero-initialise; release with
// rlhf__reward_tallies_finish.
struct rlhf__reward_tallies {
    struct rlhf__reward_tally *phase; // [n + 1]
    struct rlhf__reward_tally *run;   // [n + 1]
    size_t n;                         // rewards
};

// Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__reward_tallies_init(struct rlhf__reward_tallies *a, size_t n_reward,
                                      struct rlhf__error *err);
void rlhf__reward_tallies_finish(struct rlhf__reward_tallies *a); // accepts a zeroed one [any]

// At the end of a phase, or after it was given up: add its entries to those of the process and
// clear them. [main]
void rlhf__reward_tallies_close(struct rlhf__reward_tallies *a);

// Set rewards/<name>/{time,failures,retries} of the phase, and judge/... if there is a judge.
// [main]
void rlhf__reward_tallies_report(const struct rlhf__reward_tallies *a, const struct rlhf__config *c,
                                 int judges, struct rlhf__metrics *m);

// Sum of all entries of the phase. [main]
struct rlhf__reward_tally rlhf__reward_tallies_sum(const struct rlhf__reward_tallies *a);

// Log a line for each reward that failed in this process. [main]
void rlhf__reward_tallies_say(const struct rlhf__reward_tallies *a, const struct rlhf__config *c,
                              struct rlhf__log *log);

// Wall-clock seconds of the current phase by part.
struct rlhf__phase_times {
    double start, rollout, reward, reference, update;
};

// The samples of the current phase. `bytes` holds their texts. `paid`: the score of each
// reward for each sample; NULL if there is only one reward.
struct rlhf__shown {
    struct rlhf__sample *rows; // [n]
    char *bytes;
    float *paid;
    size_t n;
    int32_t written, reserved; // 1: samples.jsonl has them
};

// Backward passes saved in this process.
struct rlhf__spared {
    // rows left out of the backward pass; all rows in the updates of those phases
    int64_t rows, all;
    double seconds;
};

struct rlhf__report {
    struct rlhf__log *log; // borrowed
    struct rlhf__progress *progress;
    struct rlhf__metrics *metrics; // NULL until the phases begin, as are the next two
    struct rlhf__samples *samples;
    struct rlhf__rollout_log *rollout_log; // NULL unless log.rollouts
    struct rlhf__sinks *sinks;             // NULL until they are opened
    struct rlhf__shown shown;
    struct rlhf__phase_times times;
    struct rlhf__spared spared;
    struct rlhf__reward_tallies rewards;
    double started;       // clock at the start of the process
    double began;         // clock when this process began its phases; base of the ETA
    double peak_flops;    // measured after the first phase; 0 = not yet
    int32_t said_flat;    // 1: a phase without spread in any group has been reported
    int64_t still_phases; // of this process, with an adapter that never moved and zero gradients
    int32_t said_left;    // 1: too few fresh prompts has been reported
};

#endif
