// closing.h: the summary at the end of a run. It contains the verdict (history/verdict.h), the KL,
// the response length, the findings, a small curve of the headline metric, and commands for the
// next steps.
#ifndef RLHF_HOST_REPORT_CLOSING_H
#define RLHF_HOST_REPORT_CLOSING_H

#include "config/schema.h"
#include "report/run_history.h"

struct rlhf__closing {
    const struct rlhf__run_history *history;
    const struct rlhf__findings *findings;
    struct rlhf__log *log;
    const char *dir;  // the run's directory, as the user named it
    const char *data; // held-out rows; NULL: the model can generate
    rlhf_str prompt;  // of a sample; empty: no sample
    // bos: 1 = the run's prompts begin with BOS; ignore_eos: 1 = end tokens do not end responses
    int32_t bos, ignore_eos;
    const struct rlhf__plugin_config *environment; // NULL: none
};

// Log the summary as info lines. On a terminal, it includes a curve of the headline metric. A JSON
// log gets one object with the event "summary" instead. Logs nothing before the first phase has
// ended. [main]
void rlhf__closing_say(const struct rlhf__closing *);

// Log one or two commands that show more about the run. [main]
void rlhf__closing_say_next(const struct rlhf__closing *);

// Append a curve of block characters; `columns` is its maximum width. Appends nothing for fewer
// than two values. [any]
void rlhf__put_sparkline(struct rlhf__buf *out, const struct rlhf__series *, int columns);

#endif
