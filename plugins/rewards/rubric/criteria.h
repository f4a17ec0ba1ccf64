// criteria.h: the criteria of a rubric: reads their file, writes the questions to a judge, and
// reads the judge's answers.
#ifndef RLHF_REWARDS_RUBRIC_CRITERIA_H
#define RLHF_REWARDS_RUBRIC_CRITERIA_H

#include "process/bytes.h"

#include <jansson.h>
#include <rlhf/reward.h>

enum { RLHF__CRITERIA_MOST = 32, RLHF__CRITERION_NAME = 40 };

struct rlhf__criterion {
    char name[RLHF__CRITERION_NAME + 1]; // lower-case letters, digits and '_'
    const char *ask;                     // borrowed from the file
    double weight, gate; // gate: a lower score than this makes the reward 0; 0 = there is no gate
};

// Zero-initialize, then set `host`.
struct rlhf__criteria {
    const rlhf_host *host;
    json_t *file;
    uint32_t n;
    double scale; // scores are divided by this number
    struct rlhf__criterion of[RLHF__CRITERIA_MOST];
};

// Read the file. Errors: RLHF_E_INVALID; the message has the file, the member, the value found and
// the allowed values. Release with rlhf__criteria_finish, even after a failure. [main]
rlhf_status rlhf__criteria_read(struct rlhf__criteria *, const char *path);
void rlhf__criteria_finish(struct rlhf__criteria *); // [main]

// Check that a data row has every member KEY that a criterion contains as {row.KEY}. Errors:
// RLHF_E_INVALID. [main]
rlhf_status rlhf__criteria_check_row(const struct rlhf__criteria *, rlhf_str row);

// Append the question about row i by criterion k in the form that a judge reads: the prompt, the
// response, the criterion, and how to answer. [any]
void rlhf__criteria_ask(const struct rlhf__criteria *, uint32_t k, const rlhf_reward_in *,
                        uint32_t i, struct rlhf__bytes *out);

// Read a judge's answer (score.h).
// Returns 1 and sets *score to a number from 0 to 1. Otherwise returns 0 with the reason in
// why[cap]. [any]
int rlhf__criteria_score(const struct rlhf__criteria *, const char *text, size_t n, double *score,
                         char *why, size_t cap);

#endif
