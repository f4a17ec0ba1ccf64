// closing.h: the summary at the end of a run. It contains the verdict (verdict/verdict.h), the KL,
// the response length, the findings, and a small curve of the headline metric.
#ifndef RLHF_HOST_REPORT_CLOSING_H
#define RLHF_HOST_REPORT_CLOSING_H

#include "config/schema.h"
#include "report/run_history.h"
#include "verdict/verdict.h"

struct rlhf__closing {
    const struct rlhf__run_history *history;
    struct rlhf__log *log;
};

// Log the summary as info lines. On a terminal, it includes a curve of the headline metric. A JSON
// log gets one object with the event "summary" instead. Logs nothing before the first phase has
// ended. [main]
void rlhf__closing_say(const struct rlhf__closing *);

// Append the summary's first sentences: "Reward rose from 0.557 to 0.964; best 0.97 in phase 28".
// [any]
void rlhf__put_verdict(const struct rlhf__verdict *, struct rlhf__buf *out);

#endif
