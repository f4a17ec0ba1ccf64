// events.h: RUN/events.jsonl, the history of a run: its starts, warnings, checkpoints and ends
// (docs/run-files.md).
//
// A line that cannot be written is reported once and does not end the run. All functions accept
// NULL and then do nothing.
#ifndef RLHF_HOST_REPORT_EVENTS_H
#define RLHF_HOST_REPORT_EVENTS_H

#include "base/folder.h"
#include "base/log.h"

struct rlhf__events; // opaque

// Open the history of a new run (keep_phase < 0) or of a resumed one. See rlhf__jsonl_open for the
// lines that are kept. `log` is borrowed until close. [main]
rlhf_status rlhf__events_open(const struct rlhf__folder *run, int64_t keep_phase,
                              struct rlhf__log *log, struct rlhf__events **out,
                              struct rlhf__error *err);
void rlhf__events_close(struct rlhf__events *);

// Record the beginning of the process. If `phase` < 0, the event is "start". Otherwise the event is
// "resume", `phase` is the number of phases that earlier processes completed, and `best` is 1 if
// the checkpoint of that phase is the best so far. `phases` is the number of planned phases. `argv`
// ends with NULL, and may itself be NULL. [main]
void rlhf__events_begin(struct rlhf__events *, int64_t phase, int best, int64_t phases,
                        const char *const *argv);

// Record a finding: its phase (counted from 1), its short name, and the sentence that was logged.
// [main]
void rlhf__events_warning(struct rlhf__events *, int64_t phase, const char *finding,
                          const char *text);

// Record that the checkpoint of a phase has been written. `best` is 1 if it is the best so far.
// [main]
void rlhf__events_checkpoint(struct rlhf__events *, int64_t phase, int best);

// Record that the process ends. `phase` is the number of phases done. `status` is "done", "stopped"
// or "failed". [main]
void rlhf__events_end(struct rlhf__events *, int64_t phase, const char *status, const char *reason);

// Call fsync on the file. This is needed before a checkpoint is committed. [main]
rlhf_status rlhf__events_sync(struct rlhf__events *, struct rlhf__error *err);

#endif
