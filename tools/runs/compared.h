// compared.h: several runs, read and divided into groups of equal settings.
#ifndef RLHF_TOOLS_RUNS_COMPARED_H
#define RLHF_TOOLS_RUNS_COMPARED_H

#include "history/judged_run.h"

// Zero-initialize; release with rlhf__compared_finish.
struct rlhf__compared {
    struct rlhf__judged_run *runs;
    size_t n;
    json_t *groups, *differ; // history/groups.h
    json_t *summary;         // likewise; NULL before rlhf__compared_judge
    const char
        *headline; // the metric by which all runs are judged; NULL if the runs share no such metric
};

// Read the runs and make the groups. Errors: RLHF_E_INVALID if a path is not a run or is given
// twice; RLHF_E_IO, RLHF_E_NOMEM. [any]
rlhf_status rlhf__compared_read(const char *const *paths, size_t n, struct rlhf__compared *out,
                                struct rlhf__error *err);

// Set the member `summary`, in which group i has the name label(i). Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__compared_judge(struct rlhf__compared *, const char *(*label)(size_t group),
                                 struct rlhf__error *err);

// Returns the runs of a group, or NULL if out of memory. Free the list with free(). [any]
const struct rlhf__judged_run **rlhf__compared_group(const struct rlhf__compared *, size_t group,
                                                     size_t *n);

// Append the names of a group's runs (name_range.h). [any]
void rlhf__compared_put_names(const struct rlhf__compared *, size_t group, struct rlhf__buf *out);

void rlhf__compared_finish(struct rlhf__compared *); // accepts a zeroed one [any]

#endif
