// rlhf/sink.h: sinks receive the metrics and samples of a run, e.g. to send them to an experiment
// tracker.
//
// Plugin contract 1.0, frozen: it only grows.
//
// The host calls begin(), then phase() after each phase, then end(). A sink observes; it cannot
// change a run. If one of its functions fails, the host warns and calls only end() for the rest of
// the run. After a resume, the phases after the last checkpoint arrive a second time, with the same
// numbers. [R:sink]
#ifndef RLHF_SINK_H
#define RLHF_SINK_H

#include "plugin.h"

// The run that begins, or is resumed. Strings are borrowed until begin() returns.
typedef struct rlhf_sink_run {
    uint32_t size;
    uint32_t resumed;   // 1: the run is resumed; `phase` phases are done
    int64_t phase;      // phases done
    int64_t phases;     // planned number of phases
    const char *dir;    // the run's directory, absolute
    const char *name;   // the last part of dir
    const char *config; // the resolved settings, a JSON object as in config.json
} rlhf_sink_run;

// What a phase reported. Everything is borrowed until phase() returns.
typedef struct rlhf_sink_phase {
    uint32_t size;
    uint32_t n_metrics, n_samples, reserved;
    // Number of phases done, the same number as "phase" in metrics.jsonl: 1 after the first phase.
    // 0: the metrics are of held-out responses, measured before the first phase.
    int64_t phase;
    int64_t steps;  // optimizer steps taken so far
    double elapsed; // seconds since the run began, including those before a resume
    // [n_metrics] names and values, as in metrics.jsonl; a value may be NaN
    const char *const *name;
    const double *value;
    // [n_samples] the phase's samples, as in samples.jsonl (log.samples sets their number); score
    // is the total reward
    const rlhf_str *prompt, *response;
    const float *score;
} rlhf_sink_phase;

enum rlhf_run_end {
    RLHF_RUN_DONE = 0,    // all phases
    RLHF_RUN_STOPPED = 1, // by the user, run.stop_after or a stopping rule; it can be resumed
    RLHF_RUN_FAILED = 2
};

typedef struct rlhf_sink_ops {
    uint32_t size, flags;
    rlhf_status (*begin)(void *self, const rlhf_sink_run *);   // [main]
    rlhf_status (*phase)(void *self, const rlhf_sink_phase *); // [main]
    // The run ends. `how` is an enum rlhf_run_end. `why` is a sentence for RLHF_RUN_FAILED and
    // RLHF_RUN_STOPPED, otherwise "". `end` may be NULL. [main]
    rlhf_status (*end)(void *self, int32_t how, const char *why);
} rlhf_sink_ops;

#endif
