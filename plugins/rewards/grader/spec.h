// spec.h: reads a grader from a JSON file, which holds the grader itself or a fine-tuning job of
// the hosted service (its method.reinforcement.grader). docs/rewards/grader.md describes the types.
#ifndef RLHF_REWARDS_GRADER_SPEC_H
#define RLHF_REWARDS_GRADER_SPEC_H

#include "grader/formula.h"
#include "grader/single.h"

// Zero-initialize, then set `host` and `path`.
struct rlhf__grader_spec {
    const rlhf_host *host;
    const char *path; // of the file, borrowed
    json_t *file;
    uint32_t n;
    struct rlhf__grader *of; // [n]
    int32_t multi;           // 1: the grade is the formula's value
    struct rlhf__formula formula;
    double pass; // as in struct rlhf__grader, of the whole
};

// Read the file. The message of RLHF_E_INVALID has the file, the place in it, what was found and
// what is expected. Release with rlhf__grader_spec_finish, even after a failure. [main]
rlhf_status rlhf__grader_spec_read(struct rlhf__grader_spec *);

// The same for a file that was parsed already; takes over the reference to it. [main]
rlhf_status rlhf__grader_spec_take(struct rlhf__grader_spec *, json_t *file);
void rlhf__grader_spec_finish(struct rlhf__grader_spec *); // [main]

// Check that a data row has every value that a template reads as {{ item.X }}. Errors:
// RLHF_E_INVALID. [main]
rlhf_status rlhf__grader_spec_check_row(const struct rlhf__grader_spec *, rlhf_str row);

#endif
