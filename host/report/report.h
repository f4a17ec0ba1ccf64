// report.h: the outputs of a run: log, progress, metrics, samples and rollouts, and its timers.
#ifndef RLHF_HOST_REPORT_H
#define RLHF_HOST_REPORT_H

#include "report/metrics.h"
#include "report/progress.h"
#include "report/reward_tallies.h"
#include "report/rollout_log.h"
#include "report/samples.h"

// Wall-clock seconds of the current phase by part.
struct rlhf__phase_times {
    double start, rollout, reward, reference, update;
};

// Samples of the current phase; `bytes` holds their texts, `paid` the scores of several rewards.
struct rlhf__shown {
    struct rlhf__sample *rows; // [n]
    char *bytes;
    float *paid;
    size_t n;
};

// Backward passes saved in this process.
struct rlhf__spared {
    int64_t rows, all; // rows left out of it, of all rows in the updates of such phases
    double seconds;
};

struct rlhf__report {
    struct rlhf__log *log; // borrowed
    struct rlhf__progress *progress;
    struct rlhf__metrics *metrics; // NULL until the phases begin, as are the next two
    struct rlhf__samples *samples;
    struct rlhf__rollout_log *rollout_log; // NULL unless log.rollouts
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
