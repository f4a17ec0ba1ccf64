// jsonl.h: a file of one JSON object a line, each with a "phase", that only grows, and that a
// resumed run first cuts back.
#ifndef RLHF_HOST_JSONL_H
#define RLHF_HOST_JSONL_H

#include "base/folder.h"
#include "base/log.h"

struct rlhf__jsonl {
    char *path;
    int fd;
    int reserved;
};

// Open `name` in a run directory for appending. keep_phase < 0: emptied; else the file is cut after
// the last row of a phase up to keep_phase. Lines before that which are no such row stay as they
// are, and the log says how many. Errors: RLHF_E_INVALID (a link, no regular file), RLHF_E_IO.
// [main]
rlhf_status rlhf__jsonl_open(const struct rlhf__folder *run, const char *name, int64_t keep_phase,
                             struct rlhf__log *log, struct rlhf__jsonl *out,
                             struct rlhf__error *err);
void rlhf__jsonl_close(struct rlhf__jsonl *j); // zeroed structs allowed

// Append bytes (whole lines). A failure leaves the file as it was. [main]
rlhf_status rlhf__jsonl_append(struct rlhf__jsonl *j, const struct rlhf__buf *lines,
                               struct rlhf__error *err);

// fsync. [main]
rlhf_status rlhf__jsonl_sync(struct rlhf__jsonl *j, struct rlhf__error *err);

#endif
