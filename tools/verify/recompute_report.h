// recompute_report.h: prints the results of recomputing a run, as text or as JSON.
#ifndef RLHF_TOOLS_VERIFY_RECOMPUTE_REPORT_H
#define RLHF_TOOLS_VERIFY_RECOMPUTE_REPORT_H

#include "verify/checks.h"

#include <jansson.h>
#include <stdint.h>

// One phase that was recomputed.
struct rlhf__recomputed {
    int64_t phase;
    const char *dtype;  // of the run's products: "f32", "bf16"
    int32_t must_equal; // 1: the arithmetic is the run's, so every bit must be equal
    const struct rlhf__checks *checks;
};

// Print a phase to standard output: its verdict, then each comparison. [main]
void rlhf__recompute_print(const struct rlhf__recomputed *);

// Return the phase as a JSON object, NULL if out of memory. [main]
json_t *rlhf__recompute_json(const struct rlhf__recomputed *);

#endif
