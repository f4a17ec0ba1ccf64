// tensorboard.h: writes TensorBoard event files: scalars, histograms and texts.
//
// A file is a sequence of TFRecord frames (length, masked CRC-32C, bytes, masked CRC-32C), each
// around a protobuf Event message. tensorboard.c lists the few fields that are used. An existing
// file is read only when it is cut back on resume.
#ifndef RLHF_HOST_REPORT_TENSORBOARD_H
#define RLHF_HOST_REPORT_TENSORBOARD_H

#include "base/folder.h"
#include "report/distribution.h"

struct rlhf__tensorboard {
    char *path;
    int fd;
};

// Open the event file in the run's folder `name`, which is created if needed. If keep_phase < 0,
// start a new file. Otherwise continue the newest file, but first cut it off before the first event
// of a step > keep_phase or before the first damaged record, whichever comes first. [main]
rlhf_status rlhf__tensorboard_open(const struct rlhf__folder *run, const char *name,
                                   int64_t keep_phase, struct rlhf__tensorboard *out,
                                   struct rlhf__error *err);
void rlhf__tensorboard_close(struct rlhf__tensorboard *e); // zeroed structs allowed

// Append one scalar, one histogram or one Markdown text to `summary`, which holds a Summary message
// that is being built. [any]
void rlhf__tensorboard_scalar(struct rlhf__buf *summary, const char *tag, double value);
void rlhf__tensorboard_histogram(struct rlhf__buf *summary, const char *tag,
                                 const struct rlhf__distribution *d);
void rlhf__tensorboard_text(struct rlhf__buf *summary, const char *tag, rlhf_str text);

// Write the summary as one event of that step, at the current time. [main]
rlhf_status rlhf__tensorboard_write(struct rlhf__tensorboard *e, int64_t step,
                                    const struct rlhf__buf *summary, struct rlhf__error *err);

// Call fsync on the file. [main]
rlhf_status rlhf__tensorboard_sync(struct rlhf__tensorboard *e, struct rlhf__error *err);

#endif
