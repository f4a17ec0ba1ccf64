// report.h: everything that a run outputs (log, progress, metrics, samples, rollouts), and its
// timers.
#ifndef RLHF_HOST_REPORT_REPORT_H
#define RLHF_HOST_REPORT_REPORT_H

#include "config/config.h"
#include "report/events.h"
#include "report/metrics.h"
#include "report/progress.h"
#include "report/rollout_log.h"
#include "report/sample_choice.h"
#include "report/sinks.h"
#include "report/spread_writer.h"
#include "sample/reward_call.h"

#include <stddef.h>

// Times and failures of the rewards and the judge, for the current phase and for the whole process.
// Each array has the rewards in the config's order, then the judge. Zero-initialize; release with
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

// Add the phase's entries to those of the process, then clear the phase's entries. Call it when a
// phase ends or is abandoned. [main]
void rlhf__reward_tallies_close(struct rlhf__reward_tallies *a);

// Set rewards/<name>/{time,failures,retries} of the phase and, if there is a judge,
// judge/{time,failures,retries}. [main]
void rlhf__reward_tallies_report(const struct rlhf__reward_tallies *a, const struct rlhf__config *c,
                                 int judges, struct rlhf__metrics *m);

// Returns the sum of the phase's entries. [main]
struct rlhf__reward_tally rlhf__reward_tallies_sum(const struct rlhf__reward_tallies *a);

// Log a line for each reward that failed in this process. [main]
void rlhf__reward_tallies_say(const struct rlhf__reward_tallies *a, const struct rlhf__config *c,
                              struct rlhf__log *log);

// Wall-clock seconds of the current phase, by activity.
struct rlhf__phase_times {
    double start, rollout, reward, reference, update;
};

// Work that the backward passes of this process saved.
struct rlhf__spared {
    // rows that the backward pass left out, and all rows
    int64_t rows, all;
    double seconds;
};

struct rlhf__report {
    struct rlhf__log *log; // borrowed
    struct rlhf__progress *progress;
    struct rlhf__metrics *metrics; // this and the next three: NULL until the phases begin
    struct rlhf__samples *samples; // this and the next: NULL if another process writes them
    struct rlhf__spread *spread;
    struct rlhf__rollout_log *rollout_log; // NULL unless log.rollouts is set
    struct rlhf__sinks *sinks;             // NULL until they are opened
    struct rlhf__events *events;           // NULL until the phases begin
    struct rlhf__sample_choice chosen;     // samples of the current phase
    double samples_at;                     // clock when samples were last shown; 0: never
    int64_t warned;                        // the last phase with a warning, from 1; 0: none
    struct rlhf__phase_times times;
    struct rlhf__spared spared;
    struct rlhf__reward_tallies rewards;
    double started;    // clock at the start of the process
    double began;      // clock at this process's first phase; the ETA counts from here
    double peak_flops; // measured after the first phase; 0 = not yet measured
    int32_t silent;    // 1: another process writes and shows everything
    int32_t said_left; // 1: too few fresh prompts has been reported
    // phases of this process in which an adapter that never moved got no gradient
    int64_t still_phases;
};

// Log "phase N: " and the text as a warning, and write the warning to events.jsonl. Does nothing if
// r->silent is set. `phase` counts from 1. `finding` is a short name for the warning, such as
// "collapsed". [main]
__attribute__((format(printf, 4, 5))) void
rlhf__report_warn(struct rlhf__report *r, int64_t phase, const char *finding, const char *fmt, ...);

#endif
