// moved.h: files of a checkpoint that name the base of an adapter, where the base has moved since
// the run (`verify --set policy.path=...`). The base's sha256 has been compared before.
#ifndef RLHF_TOOLS_VERIFY_MOVED_H
#define RLHF_TOOLS_VERIFY_MOVED_H

#include "base/buf.h"

#include <rlhf/base.h>

// Returns 1 if the file `name` of a checkpoint names the base. [any]
int rlhf__moved_names(const char *name);

// Read the file `path`, a recomputed file `name` of a checkpoint. In *out, the base has the path
// that it has in the run's own file `own` or, if the run has deleted that checkpoint, in the
// latest checkpoint of `run`. Errors: those of rlhf__file_read. [main]
rlhf_status rlhf__moved_read(const char *run, const char *name, const char *own, const char *path,
                             struct rlhf__buf *out, struct rlhf__error *err);

#endif
