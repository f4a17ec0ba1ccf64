// eval_table.h: the result of `eval --reward` for one file of prompts: one row per measure, for one
// model or two. Printed as lines, as a table of two models, or as JSON.
#ifndef RLHF_TOOLS_EVAL_EVAL_TABLE_H
#define RLHF_TOOLS_EVAL_EVAL_TABLE_H

#include "base/log.h"
#include "eval/stats.h"
#include "model/model.h"

#include <jansson.h>

enum { RLHF__TABLE_REWARDS = 16 }; // standard deviations are shown for this many rewards

struct rlhf__table_row {
    char name[192];
    int32_t decimals;
    struct rlhf__estimate side[2];
    struct rlhf__estimate difference; // side 0 minus side 1, over the same prompts
};

struct rlhf__table_side {
    const char *model; // directory, borrowed
    double reward_std, std[RLHF__TABLE_REWARDS];
    uint32_t scored; // responses that have a reward
};

struct rlhf__table {
    const char *data; // file of the prompts, borrowed; NULL: the run's prompts
    uint32_t responses, sides, rewards, parts, per_prompt;
    int64_t seed, prompts; // prompts: those with responses
    double pass;           // lowest reward of a right response; NaN: the rewards' verdicts decide
    struct rlhf__table_side side[2];
    // [n] owned; "reward" first, then each of the `rewards` rewards, then each of their `parts`
    // parts, whose names are REWARD/PART
    struct rlhf__table_row *row;
    size_t n;
};

// Append a row. Returns NULL when out of memory. The pointer is valid until the next call. [main]
struct rlhf__table_row *rlhf__table_add(struct rlhf__table *, const char *name, int decimals);
void rlhf__table_finish(struct rlhf__table *); // accepts a zeroed one [main]

// Print the table to standard output. If `heading` is 1, begins with the name of the file. [main]
void rlhf__table_print(const struct rlhf__table *, int heading);

// Returns a new object, or NULL when out of memory. Values that are not finite are left out. [main]
json_t *rlhf__table_json(const struct rlhf__table *);

// Open evaluations.jsonl of the run that wrote the model, for appending. If the file's last line is
// incomplete, end it with a line break. The caller closes *fd. Errors: RLHF_E_INVALID if no run
// wrote the model, RLHF_E_IO. [main]
rlhf_status rlhf__table_open(const struct rlhf__model *, int *fd, struct rlhf__error *err);

// Append the results, an array of objects from rlhf__table_json, to `fd`, the evaluations.jsonl
// that rlhf__table_open opened. Errors: RLHF_E_IO. [main]
rlhf_status rlhf__table_save(int fd, const json_t *results, struct rlhf__log *,
                             struct rlhf__error *err);

#endif
