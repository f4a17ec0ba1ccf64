// chain_log.h: writes RUN/chain.jsonl, the hash chain of a run (history/chain_file.h): a link for
// every phase, and the digests of every checkpoint's files.
#ifndef RLHF_HOST_KEEP_CHAIN_LOG_H
#define RLHF_HOST_KEEP_CHAIN_LOG_H

#include "base/digests.h"
#include "base/folder.h"
#include "base/log.h"
#include "history/digest.h"

#include <jansson.h>

struct rlhf__chain_log; // opaque

// The values with which a run begins. A function that gets this struct takes ownership of both
// members, even if it fails.
struct rlhf__chain_start {
    json_t *begin;    // everything that the results depend on
    json_t *settings; // settings that the results do not depend on
};

// If `keep` < 0, begin the file of a new run. Otherwise continue the file of a run that was resumed
// from the checkpoint of phase `keep`, without the lines of later phases. The line of that
// checkpoint may be missing (rlhf__chain_log_checkpoint). If a resumed run's `start` differs from
// the last start values in the file, a line with the new values is added. Inputs that `start` lacks
// are copied from the last start values. Errors: RLHF_E_INVALID, RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__chain_log_open(const struct rlhf__folder *run, int64_t keep,
                                 struct rlhf__chain_start start, struct rlhf__log *log,
                                 struct rlhf__chain_log **out, struct rlhf__error *err);
void rlhf__chain_log_close(struct rlhf__chain_log *); // NULL allowed [main]

// Append the link of a phase. `unsteady` is the digest of the metrics that depend on the machine,
// such as times. The digest is written to the file, but the hash of the link does not depend on it.
// [main]
rlhf_status rlhf__chain_log_phase(struct rlhf__chain_log *, const struct rlhf__chain_link *,
                                  const char *unsteady, struct rlhf__error *err);

// Append the digests of all files in the run's checkpoint of this phase, unless chain.jsonl already
// has them. Reads each file whose digest is not in `known`. If `known` is NULL, reads all files.
// [main]
rlhf_status rlhf__chain_log_checkpoint(struct rlhf__chain_log *, int64_t phase,
                                       struct rlhf__digests *known, struct rlhf__error *err);

// Call fsync on the file. Call this before a checkpoint is committed. [main]
rlhf_status rlhf__chain_log_sync(struct rlhf__chain_log *, struct rlhf__error *err);

#endif
