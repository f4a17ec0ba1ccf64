// report_data.h: the data of a report, i.e. everything that the report shows of one or several
// runs, as JSON. The page shows this data, and `report --json` prints it.
#ifndef RLHF_TOOLS_PAGE_REPORT_DATA_H
#define RLHF_TOOLS_PAGE_REPORT_DATA_H

#include "verdict/verdict.h"

#include "base/buf.h"

struct rlhf__report_data {
    struct rlhf__buf json; // an object in UTF-8
    char *title;           // the name of the run, or "3 runs"
    char *said;            // one sentence: the verdict of one run, or the comparison of several
    const char *kind;      // the kind of the verdict; "none" for several runs
};

// Read the runs, and judge each. Errors: RLHF_E_INVALID if a path is not a run or is given twice;
// RLHF_E_IO, RLHF_E_NOMEM. Release with rlhf__report_data_finish, even after a failure. [main]
rlhf_status rlhf__report_data_make(const char *const *paths, size_t n,
                                   struct rlhf__report_data *out, struct rlhf__error *err);
void rlhf__report_data_finish(struct rlhf__report_data *d);

#endif
