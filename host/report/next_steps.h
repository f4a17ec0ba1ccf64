// next_steps.h: the commands that a run suggests at its end: a page about the run, and texts or
// measurements of its model. Each command runs as it is printed (tests/e2e/test_e2e_printed.c).
#ifndef RLHF_HOST_REPORT_NEXT_STEPS_H
#define RLHF_HOST_REPORT_NEXT_STEPS_H

#include "base/log.h"
#include "config/schema.h"
#include "report/sample_choice.h"

struct rlhf__next_steps {
    struct rlhf__log *log;
    const char *dir;                               // the run's directory, as the user named it
    const char *data;                              // held-out rows; NULL: the model can generate
    const struct rlhf__plugin_config *environment; // NULL: none
    const struct rlhf__sample_choice *samples;     // of the last phase
    // templated: 1 = `generate` would put a text into the model's chat template; ignore_eos: 1 =
    // end tokens do not end responses
    int32_t templated, ignore_eos;
    int64_t max_new, n_ctx; // the longest response of the run (0: no responses); the context
};

// Log one or two commands that show more about the run. [main]
void rlhf__next_steps_say(const struct rlhf__next_steps *);

// Append the command that writes the page about the run. [any]
void rlhf__next_steps_put_report(struct rlhf__buf *out, const char *dir);

#endif
