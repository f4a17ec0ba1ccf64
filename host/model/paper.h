// paper.h: a compute backend on paper: a table of the same ops as a real one, whose allocations are
// addresses that nobody may read and whose ops compute nothing. It counts what a model would
// allocate, by owner and use; the code that will allocate it makes the calls.
//
// It does not know models, or how much memory there is (room.h).
#ifndef RLHF_HOST_PAPER_H
#define RLHF_HOST_PAPER_H

#include "base/error.h"
#include "model/ledger.h"

#include <rlhf/compute.h>

struct rlhf__paper;

// A table like `real`, borrowed: a member that it lacks is NULL. budget: bytes of its workspace for
// logits, 0 = the backend's default. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__paper_create(const rlhf_compute *real, uint64_t budget, struct rlhf__paper **out,
                               struct rlhf__error *err);
void rlhf__paper_destroy(struct rlhf__paper *); // NULL allowed [main]

const rlhf_compute *rlhf__paper_table(const struct rlhf__paper *);

// Later allocations belong to `owner`, for `use`; packed weights and workspaces have uses of their
// own. [step]
void rlhf__paper_account(struct rlhf__paper *, const char *owner, int32_t use);
// Until the next rlhf__paper_account packed weights belong to `owner`, whoever asks for them.
// [step]
void rlhf__paper_packs(struct rlhf__paper *, const char *owner);
// The allocation that `dev` lies in is for `use`. [step]
void rlhf__paper_retag(struct rlhf__paper *, rlhf_dev dev, int32_t use);
// What is allocated now, and what was allocated at the peak. [any]
const struct rlhf__uses *rlhf__paper_uses(const struct rlhf__paper *);
const struct rlhf__uses *rlhf__paper_peak(const struct rlhf__paper *);

#endif
