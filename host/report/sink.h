// sink.h: somewhere the numbers of a phase are written: a file of the run that a resumed run first
// cuts back.
//
// A new one is a file sink_<name>.c and a line in metrics.c's list.
#ifndef RLHF_HOST_SINK_H
#define RLHF_HOST_SINK_H

#include "base/folder.h"
#include "base/log.h"
#include "config/schema.h"

#include <rlhf/base.h>

struct rlhf__metric {
    char *name;
    double value;
};

// A phase's numbers, borrowed for the call. There is no metric of the name "phase".
struct rlhf__sink_row {
    int64_t phase;
    const struct rlhf__metric *metric; // [n], sorted by name
    size_t n;
};

struct rlhf__sink {
    const char *name; // of its file or folder in the run directory
    // Whether the settings want it; NULL = they always do.
    int32_t (*wanted)(const struct rlhf__log_config *);
    // Open for a new run (keep_phase < 0) or a resumed one, where rows of phases > keep_phase are
    // dropped. run is borrowed until close. Caller closes *self, also after a failure. [main]
    rlhf_status (*open)(const struct rlhf__folder *run, int64_t keep_phase, struct rlhf__log *log,
                        void **self, struct rlhf__error *err);
    // Write a row; it is with the system on return. A failure leaves the file as it was. [main]
    rlhf_status (*row)(void *self, const struct rlhf__sink_row *, struct rlhf__error *err);
    // Write a Markdown text under a tag; NULL = it keeps none. [main]
    rlhf_status (*text)(void *self, int64_t phase, const char *tag, rlhf_str text,
                        struct rlhf__error *err);
    rlhf_status (*sync)(void *self, struct rlhf__error *err); // fsync [main]
    void (*close)(void *self);                                // NULL allowed [main]
};

extern const struct rlhf__sink rlhf__sink_jsonl, rlhf__sink_events, rlhf__sink_csv;

#endif
