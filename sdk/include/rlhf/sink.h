// rlhf/sink.h: sinks receive what a run reports, e.g. to send it to an experiment tracker.
//
// Plugin contract 1.0, frozen: it only grows.
//
// The host calls begin(), then phase() for each phase, then end(). A sink observes; it cannot
// change a run. If one of its functions fails, the host warns and calls only end() for the rest of
// the run. [R:sink]
//
// The host calls phase() after the phase's checkpoint, if there is one. The host reads all
// that it passes from the run's files, so a resumed run can report any phase again, with the same
// numbers and texts. After a resume all phases arrive again, unless begin() names the phase from
// which the sink needs them. So a sink gets every phase, whenever the process died. It must
// recognize a phase that it has already.
//
// A sink that did not come with the program runs in a separate process, which can write files only
// in run->own_dir and cannot use the network (docs/sinks.md).
#ifndef RLHF_SINK_H
#define RLHF_SINK_H

#include "plugin.h"

// The run that begins, or is resumed. Strings are borrowed until begin() returns.
typedef struct rlhf_sink_run {
    uint32_t size;
    uint32_t resumed;    // 1: the run is resumed
    int64_t phases_done; // by earlier processes
    int64_t phases;      // planned number of phases
    const char *dir;     // the run's directory, absolute
    // A directory of the sink's own, absolute. It exists, and a resume keeps it.
    const char *own_dir;
    const char *name;   // the last part of dir
    const char *config; // the resolved settings, a JSON object as in config.json
} rlhf_sink_run;

// What begin() answers. The host has set all members but `size` to 0.
typedef struct rlhf_sink_answer {
    uint32_t size, reserved;
    // The first phase that the sink needs, counted like rlhf_sink_phase.phases_done. The host does
    // not report the phases before it.
    int64_t from_phase;
} rlhf_sink_answer;

// How a number is distributed over the rows of a phase.
typedef struct rlhf_spread {
    uint32_t size;
    uint32_t n;           // entries of `value`
    int64_t numbers;      // how many there are
    double mean;          // of all numbers
    const char *name;     // "reward", "length", "kl" or "advantage"
    const double *value;  // [n] ascending: each different number, or quantiles from least to most
    const int64_t *count; // [n] how often a number occurs; NULL: `value` has quantiles
} rlhf_spread;

enum rlhf_sink_phase_flag {
    RLHF_SINK_PHASE_BEST = 1 // the phase's checkpoint is the best so far (checkpoint.best)
};

// What a phase reported. Everything is borrowed until phase() returns. Unknown numbers are NaN, and
// so are numbers that are not finite.
typedef struct rlhf_sink_phase {
    uint32_t size, flags; // bits of enum rlhf_sink_phase_flag
    uint32_t n_metrics, n_samples, n_spreads, n_warnings;
    // Phases done, the same number as "phase" in metrics.jsonl: 1 after the first phase. 0: the
    // metrics are of held-out responses, measured before the first phase.
    int64_t phases_done;
    double elapsed; // seconds that the phases took so far, including those before a resume
    // [n_metrics] names and values, as in metrics.jsonl
    const char *const *name;
    const double *value;
    // [n_samples] responses, as in samples.jsonl (log.samples sets their number)
    const rlhf_str *prompt, *response;
    const double *score;              // the mixed reward
    const double *ref_logp;           // log-probability of the response under the reference, nats
    const uint8_t *held_out;          // 1: the prompt is a held-out one
    const rlhf_spread *const *spread; // [n_spreads] as in spread.jsonl
    // [n_warnings] a short name such as "collapsed", and the sentence of the log
    const char *const *warning_id, *const *warning;
    // The directory of the phase's checkpoint, relative to the run's: "checkpoints/000030". NULL:
    // none was written. Old checkpoints are removed (checkpoint.keep).
    const char *checkpoint;
} rlhf_sink_phase;

enum rlhf_run_end {
    RLHF_RUN_DONE = 0,    // all phases
    RLHF_RUN_STOPPED = 1, // by the user, run.stop_after or a stopping rule; it can be resumed
    RLHF_RUN_FAILED = 2
};

// How the run judges itself, as in its closing lines (docs/did-it-work.md).
enum rlhf_run_verdict {
    RLHF_RUN_VERDICT_NONE = 0, // too short to judge
    RLHF_RUN_VERDICT_GOOD = 1,
    RLHF_RUN_VERDICT_WARN = 2,
    RLHF_RUN_VERDICT_BAD = 3
};

// The end of the run's process. Everything is borrowed until end() returns.
typedef struct rlhf_sink_end {
    uint32_t size;
    int32_t how;         // enum rlhf_run_end
    int64_t phases_done; // a resume goes on after this phase
    const char *why;     // a sentence for RLHF_RUN_FAILED and RLHF_RUN_STOPPED, otherwise ""
    // The newest checkpoint, and the best one; relative to the run's directory, NULL: none.
    const char *last_checkpoint, *best_checkpoint;
    const char *verdict;  // a sentence or two: "Reward rose from 5 to 9.5"; "": no verdict
    int32_t verdict_kind; // enum rlhf_run_verdict
    uint32_t n_findings;
    // [n_findings] what the closing lines name as found: a short name, and a sentence
    const char *const *finding_id, *const *finding;
} rlhf_sink_end;

typedef struct rlhf_sink_ops {
    uint32_t size;
    uint32_t flags; // no flag is defined; must be 0
    rlhf_status (*begin)(void *self, const rlhf_sink_run *, rlhf_sink_answer *); // [main]
    rlhf_status (*phase)(void *self, const rlhf_sink_phase *);                   // [main]
    rlhf_status (*end)(void *self, const rlhf_sink_end *); // may be NULL [main]
} rlhf_sink_ops;

#endif
