// spread_writer.h: writes the distributions of a phase's rewards, lengths, KLs and advantages to
// RUN/spread.jsonl (docs/run-files.md).
#ifndef RLHF_HOST_REPORT_SPREAD_WRITER_H
#define RLHF_HOST_REPORT_SPREAD_WRITER_H

#include "base/folder.h"
#include "base/log.h"
#include "batch/rows.h"

struct rlhf__spread; // opaque

// Opens the file. keep_phase has the same meaning as in rlhf__metrics_open. [main]
rlhf_status rlhf__spread_open(const struct rlhf__folder *run, int64_t keep_phase,
                              struct rlhf__log *log, struct rlhf__spread **out,
                              struct rlhf__error *err);
void rlhf__spread_close(struct rlhf__spread *); // NULL allowed

// The kind of rows, and the numbers that are known for these rows.
enum rlhf__spread_flag {
    RLHF__SPREAD_RESPONSES = 1, // responses; otherwise rows of a file with their prompts
    RLHF__SPREAD_REWARD = 2,
    RLHF__SPREAD_REFERENCE = 4,
    RLHF__SPREAD_ADVANTAGE = 8
};

// Append the line of a phase. [main]
rlhf_status rlhf__spread_write(struct rlhf__spread *, int64_t phase, const struct rlhf__rows *rows,
                               uint32_t flags, struct rlhf__error *err);

// Call fsync on the file. This is needed before a checkpoint is committed. [main]
rlhf_status rlhf__spread_sync(struct rlhf__spread *, struct rlhf__error *err);

#endif
