// receipt.h: the receipt of a verification, as a JSON file and as an HTML page. Both contain their
// digest, so that an edited receipt is refused.
#ifndef RLHF_TOOLS_VERIFY_RECEIPT_H
#define RLHF_TOOLS_VERIFY_RECEIPT_H

#include "history/chain_file.h"
#include "verify/replay.h"

// The contents of a receipt.
struct rlhf__receipt {
    const char *run, *dir; // name and directory of the run
    const struct rlhf__chain_file *chain;
    const struct rlhf__replay_told *told; // zeros: nothing was recomputed
    const struct rlhf__faults *faults;
    int32_t limits;         // 1: results were compared within limits; 0: to the bit
    int64_t first, last;    // the phases that were asked for; 0: none
    const json_t *on_trust; // a list of ids of rewards; NULL: none
    const char *answers;    // id of the environment whose answers were taken on trust; NULL: none
};

// Returns the receipt as JSON. The result is a new reference, or NULL if out of memory. [main]
json_t *rlhf__receipt_json(const struct rlhf__receipt *);

// Returns the digest "begin", "head" or "seal" of the run's chain, or "". [any]
const char *rlhf__receipt_digest(const struct rlhf__receipt *, const char *key);

// Refuse a path that does not end in .json. Also refuse it if a file at this path, or at the path
// of the page, exists and is not a receipt. [main]
rlhf_status rlhf__receipt_can_write(const char *path, struct rlhf__error *err);

// Write the receipt as JSON to `path`, and as a page to the same path with the ending .html. [main]
rlhf_status rlhf__receipt_write(const char *path, const json_t *receipt, struct rlhf__error *err);

// Read a receipt, *.json or *.html, into *out (new reference). Errors: RLHF_E_INVALID if it is not
// a receipt, or was edited. [main]
rlhf_status rlhf__receipt_read(const char *path, json_t **out, struct rlhf__error *err);

#endif
