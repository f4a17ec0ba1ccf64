// check.h: `plugin check`, which tests a plugin file against the contract, in child processes.
//
// A plugin that passes may still have faults. The check finds only faults that show with the rows,
// options and failures that it generates.
#ifndef RLHF_TOOLS_CHECK_CHECK_H
#define RLHF_TOOLS_CHECK_CHECK_H

#include "base/dirs.h"
#include "base/json.h"

struct rlhf__check_request {
    const struct rlhf__dirs *dirs;
    const char *path;      // absolute
    const json_t *options; // of the plugin, an object or NULL
    const json_t *rows;    // objects with "prompt" and "response", an array or NULL
    int32_t seconds;       // limit for one step
};

// Both lists contain objects. A finding has the members `rule`, `plugin`, `header`, `line`, `says`
// and `saw`. A fact has the members `plugin` and `text`.
struct rlhf__check_report {
    json_t *plugins; // ids
    json_t *found, *facts;
    int64_t steps; // steps done
};

// Tests the plugins in a file and stores the findings in *out. Findings are not errors. Errors:
// RLHF_E_INVALID and RLHF_E_UNSUPPORTED if the file cannot be opened, or if a plugin refuses the
// options. Finish *out even after an error. [main]
rlhf_status rlhf__check_file(const struct rlhf__check_request *, struct rlhf__check_report *out,
                             struct rlhf__error *err);
void rlhf__check_report_finish(struct rlhf__check_report *); // accepts a zeroed one [main]

#endif
