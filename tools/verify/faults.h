// faults.h: the faults of a run, i.e. the places where the run's files differ from its chain or
// from the recomputed phases.
#ifndef RLHF_TOOLS_VERIFY_FAULTS_H
#define RLHF_TOOLS_VERIFY_FAULTS_H

#include "base/error.h"

#include <jansson.h>
#include <stdint.h>

struct rlhf__fault {
    int64_t phase;     // 0: the beginning of the run
    char file[160];    // path within the run: "checkpoints/000002/model.safetensors"
    char where[280];   // "h.0.attn.c_attn.weight[17]", "row 3, ids[4]", or a sentence
    char was[80];      // value in the run; may be empty
    char expected[80]; // correct value; may be empty
};

// Zero-initialize; release with rlhf__faults_finish.
struct rlhf__faults {
    struct rlhf__fault *item; // [n]
    size_t n, cap;
};
void rlhf__faults_finish(struct rlhf__faults *);

// Append a fault. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__faults_add(struct rlhf__faults *, const struct rlhf__fault *,
                             struct rlhf__error *err);

// Append a fault without values. [main]
rlhf_status rlhf__faults_say(struct rlhf__faults *, int64_t phase, const char *file,
                             const char *where, struct rlhf__error *err);

// Find the first difference of two JSON values. Appends to the faults a copy of `at`, with the path
// of the difference added to its member `where`. If the values are equal, returns RLHF_OK and
// appends nothing. [main]
rlhf_status rlhf__faults_compare(struct rlhf__faults *, const struct rlhf__fault *at,
                                 const json_t *was, const json_t *expected,
                                 struct rlhf__error *err);

// Returns the number of faults in the phases from..to. [any]
size_t rlhf__faults_count(const struct rlhf__faults *, int64_t from, int64_t to);

// Print one fault as a line. [main]
void rlhf__fault_print(const struct rlhf__fault *);

#endif
