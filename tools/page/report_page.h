// report_page.h: `rlhf-host report RUN...`, which makes one self-contained page about one or
// several runs.
#ifndef RLHF_TOOLS_PAGE_REPORT_PAGE_H
#define RLHF_TOOLS_PAGE_REPORT_PAGE_H

#include "base/env.h"

// The command; exit status as in cmd/commands.h. [main]
int rlhf__cmd_report(const struct rlhf__env *env, int argc, char **argv);

// At the end of a run, write report.html in the run's directory. A failure only causes a warning.
// [main]
void rlhf__report_after_run(const struct rlhf__env *env, const char *run);

#endif
