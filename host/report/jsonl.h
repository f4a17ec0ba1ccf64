// jsonl.h: appends to the files of a run, mostly JSON Lines whose objects have a "phase". When a
// run is resumed, such a file is cut back to the phase of the checkpoint.
#ifndef RLHF_HOST_REPORT_JSONL_H
#define RLHF_HOST_REPORT_JSONL_H

#include "base/buf.h"
#include "base/folder.h"
#include "base/log.h"

#include <jansson.h>

// Append all bytes to fd. On failure the file is cut back to its earlier length. `path` is used in
// messages. Errors: RLHF_E_IO, RLHF_E_NOMEM (the buffer ran out of memory earlier). [any]
rlhf_status rlhf__append_buf(int fd, const char *path, const struct rlhf__buf *bytes,
                             struct rlhf__error *err);

// Call fsync on the file, if the file supports it. [any]
rlhf_status rlhf__append_sync(int fd, const char *path, struct rlhf__error *err);

// ---- a file of JSON objects ----

struct rlhf__jsonl {
    char *path;
    int fd;
};

// Open `name` in a run directory for appending. If keep_phase < 0, the file is emptied. Otherwise
// all rows with "phase" > keep_phase are removed, and everything after the last of the other rows.
// Invalid lines before this last row are kept, and their number is logged. Errors: RLHF_E_INVALID
// (a link, not a regular file), RLHF_E_IO. [main]
rlhf_status rlhf__jsonl_open(const struct rlhf__folder *run, const char *name, int64_t keep_phase,
                             struct rlhf__log *log, struct rlhf__jsonl *out,
                             struct rlhf__error *err);
void rlhf__jsonl_close(struct rlhf__jsonl *j); // zeroed structs allowed

// Append `lines`, which must be whole lines. A failure leaves the file unchanged. [main]
rlhf_status rlhf__jsonl_append(struct rlhf__jsonl *j, const struct rlhf__buf *lines,
                               struct rlhf__error *err);

// Call `visit` with each row of the JSON Lines file `name`. The rows are borrowed. A missing file
// counts as empty. The first failure of `visit` ends the calls and is returned. Other errors:
// RLHF_E_IO, RLHF_E_INVALID (the file cannot be read), RLHF_E_NOMEM. [main]
rlhf_status rlhf__jsonl_each(const struct rlhf__folder *run, const char *name,
                             rlhf_status (*visit)(void *arg, json_t *row, struct rlhf__error *err),
                             void *arg, struct rlhf__error *err);

// Call fsync on the file. [main]
rlhf_status rlhf__jsonl_sync(struct rlhf__jsonl *j, struct rlhf__error *err);

#endif
