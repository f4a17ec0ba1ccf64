// check.h: `plugin check`: tries in child processes what the contract says of a plugin file.
//
// What it is not: proof. It finds what shows with rows, options and failures that it makes up.
#ifndef RLHF_HOST_CHECK_CHECK_H
#define RLHF_HOST_CHECK_CHECK_H

#include "base/dirs.h"
#include "base/json.h"

struct rlhf__check_request {
    const struct rlhf__dirs *dirs;
    const char *path;      // absolute
    const json_t *options; // of the plugin, an object or NULL
    const json_t *rows;    // objects with "prompt" and "response", an array or NULL
    int32_t seconds;       // that one step may take
    int32_t reserved;
};

// Lists of objects. found: rule, plugin, header, line, says, saw. facts: plugin, text.
struct rlhf__check_report {
    json_t *plugins; // ids
    json_t *found, *facts;
    int64_t steps; // tried
};

// *out needs finish also after a failure: RLHF_E_INVALID and RLHF_E_UNSUPPORTED for a file that
// cannot be opened, or options that it does not take. What is found is no failure. [main]
rlhf_status rlhf__check_file(const struct rlhf__check_request *, struct rlhf__check_report *out,
                             struct rlhf__error *err);
void rlhf__check_report_finish(struct rlhf__check_report *); // accepts a zeroed one [main]

#endif
