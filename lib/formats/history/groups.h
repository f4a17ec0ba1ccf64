// groups.h: compares several runs. Runs form a group if their settings differ only in the seed or
// in settings that cannot change results. The comparison lists the settings in which the groups
// differ. For each group, it reports the final values of the headline metric and of the KL.
#ifndef RLHF_FORMATS_HISTORY_GROUPS_H
#define RLHF_FORMATS_HISTORY_GROUPS_H

#include "history/judged_run.h"

#include <jansson.h>

// Divide the runs into groups. Runs that differ only in run.seed, run.dir, run.note, run.threads,
// run.stop_after and log.* are one group. Sets *groups to [{"label", "runs": [indices]}], in the
// order of the runs. Sets *differ to [{"key", "values": [texts]}], with one value for each group.
// Both are new references. [any]
void rlhf__groups_make(const struct rlhf__judged_run *runs, size_t n, json_t **groups,
                       json_t **differ);

// Returns the runs of `group`, which is an item of *groups. The caller frees the list with free().
// Returns NULL if memory runs out. [any]
const struct rlhf__judged_run **rlhf__group_members(const struct rlhf__judged_run *runs,
                                                    const json_t *group, size_t *n);

// Set *out to a list of sentences that compare the runs: ["Reward ends highest with kl_coef 0",
// "kl_coef 0: 0.946 (0.925 to 0.983, 3 seeds), KL 7.59; ..."]. The list is a new reference. Errors:
// RLHF_E_NOMEM. [any]
rlhf_status rlhf__groups_compare(const struct rlhf__judged_run *runs, size_t n,
                                 const json_t *groups, json_t **out, struct rlhf__error *err);

#endif
