// metrics_file.h: the interface of a metrics file. A metrics file is a file in the run directory.
// It gets the metrics of each phase, and is cut back when the run is resumed.
//
// To add a metrics file, write metrics_<name>.c and add a line to the list in metrics.c.
#ifndef RLHF_HOST_REPORT_METRICS_FILE_H
#define RLHF_HOST_REPORT_METRICS_FILE_H

#include "base/folder.h"
#include "base/log.h"
#include "config/schema.h"
#include "plugin/combine.h"

#include <rlhf/base.h>

struct rlhf__distribution; // report/distribution.h

struct rlhf__metric {
    char *name;
    double value;
    struct rlhf__combined reported; // values from plugins; n == 0: the host set the value
};

// A phase's numbers, borrowed for the call. No metric is named "phase".
struct rlhf__metrics_row {
    int64_t phase;
    const struct rlhf__metric *metric; // [n], sorted by name
    size_t n;
};

struct rlhf__metrics_file {
    const char *name; // name of the file or folder in the run directory
    // Returns 1 if the settings enable this file. NULL: the file is always enabled.
    int32_t (*wanted)(const struct rlhf__log_config *);
    // Open the file of a new run (keep_phase < 0) or of a resumed run. For a resumed run, the rows
    // of phases > keep_phase are removed. `run` is borrowed until close. The caller calls `close`
    // on `*self` even if `open` fails. [main]
    rlhf_status (*open)(const struct rlhf__folder *run, int64_t keep_phase, struct rlhf__log *log,
                        void **self, struct rlhf__error *err);
    // Write a row and flush it to the operating system. A failure leaves the file unchanged. [main]
    rlhf_status (*row)(void *self, const struct rlhf__metrics_row *, struct rlhf__error *err);
    // Write a Markdown text under a tag. NULL: the file does not accept texts. [main]
    rlhf_status (*text)(void *self, int64_t phase, const char *tag, rlhf_str text,
                        struct rlhf__error *err);
    // Write a distribution. NULL: the file does not accept distributions. [main]
    rlhf_status (*histogram)(void *self, int64_t phase, const char *tag,
                             const struct rlhf__distribution *, struct rlhf__error *err);
    rlhf_status (*sync)(void *self, struct rlhf__error *err); // fsync [main]
    void (*close)(void *self);                                // NULL allowed [main]
};

extern const struct rlhf__metrics_file rlhf__metrics_file_jsonl, rlhf__metrics_file_tensorboard,
    rlhf__metrics_file_csv;

#endif
