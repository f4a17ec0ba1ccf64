// criteria.h: the criteria of a judge: reads their file, and writes the questions to a judge.
#ifndef RLHF_REWARDS_RUBRIC_CRITERIA_H
#define RLHF_REWARDS_RUBRIC_CRITERIA_H

#include "process/bytes.h"

#include <jansson.h>
#include <rlhf/reward.h>

enum { RLHF__CRITERIA_MOST = 32, RLHF__CRITERION_NAME = 40, RLHF__ANSWERS_MOST = 64 };

struct rlhf__criterion {
    char name[RLHF__CRITERION_NAME + 1]; // lower-case letters, digits and '_'
    const char *ask;                     // borrowed from the file
    double weight, gate;   // gate: a lower score than this makes the reward 0; 0 = no gate
    const json_t *answers; // borrowed: words with their values, from 0 to 1; NULL with a scale
};

// What judges differ in.
struct rlhf__criteria_kind {
    const char *template; // of a question, unless the file has a template
    int32_t answers;      // 1: the answers are words with values; 0: numbers up to a scale
};

// Zero-initialize, then set `host` and `kind`.
struct rlhf__criteria {
    const rlhf_host *host;
    const struct rlhf__criteria_kind *kind;
    json_t *file;
    const char *template; // borrowed
    uint32_t n;
    double scale; // scores are divided by this number
    struct rlhf__criterion of[RLHF__CRITERIA_MOST];
};

// Read the file or, if `path` is NULL, make one criterion named "ask" that asks `ask`. Errors:
// RLHF_E_INVALID; the message has the file, the member, the value found and the allowed values.
// Release with rlhf__criteria_finish, even after a failure. [main]
rlhf_status rlhf__criteria_read(struct rlhf__criteria *, const char *path, const char *ask);
void rlhf__criteria_finish(struct rlhf__criteria *); // [main]

// Check that a data row has every member KEY that a criterion or the template contains as
// {row.KEY}. Errors: RLHF_E_INVALID. [main]
rlhf_status rlhf__criteria_check_row(const struct rlhf__criteria *, rlhf_str row);

// Append the question about row i by criterion k: the template with its parts. [any]
void rlhf__criteria_ask(const struct rlhf__criteria *, uint32_t k, const rlhf_reward_in *,
                        uint32_t i, struct rlhf__bytes *out);

#endif
