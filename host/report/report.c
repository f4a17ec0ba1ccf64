// report.c: see report.h.
#include "report/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

rlhf_status rlhf__reward_tallies_init(struct rlhf__reward_tallies *a, size_t n_reward,
                                      struct rlhf__error *err) {
    a->n = n_reward;
    a->phase = calloc(n_reward + 1, sizeof *a->phase);
    a->run = calloc(n_reward + 1, sizeof *a->run);
    if (a->phase && a->run) return RLHF_OK;
    return RLHF__NOMEM(err, "out of memory for rewards");
}

void rlhf__reward_tallies_finish(struct rlhf__reward_tallies *a) {
    free(a->phase);
    free(a->run);
    *a = (struct rlhf__reward_tallies){0};
}

void rlhf__reward_tallies_close(struct rlhf__reward_tallies *a) {
    for (size_t i = 0; a->phase && i <= a->n; i++) {
        rlhf__reward_tally_add(&a->run[i], &a->phase[i]);
        a->phase[i] = (struct rlhf__reward_tally){0};
    }
}

void rlhf__reward_tallies_report(const struct rlhf__reward_tallies *a, const struct rlhf__config *c,
                                 int judges, struct rlhf__metrics *m) {
    char owner[192];
    for (size_t i = 0; i < a->n; i++) {
        snprintf(owner, sizeof owner, "rewards/%s", c->reward[i].name);
        rlhf__reward_tally_report(&a->phase[i], owner, rlhf__metrics_put, m);
    }
    if (judges) rlhf__reward_tally_report(&a->phase[a->n], "judge", rlhf__metrics_put, m);
}

struct rlhf__reward_tally rlhf__reward_tallies_sum(const struct rlhf__reward_tallies *a) {
    struct rlhf__reward_tally all = {0};
    for (size_t i = 0; a->phase && i <= a->n; i++)
        rlhf__reward_tally_add(&all, &a->phase[i]);
    return all;
}

void rlhf__reward_tallies_say(const struct rlhf__reward_tallies *a, const struct rlhf__config *c,
                              struct rlhf__log *log) {
    char name[192];
    for (size_t i = 0; a->run && i < a->n; i++) {
        snprintf(name, sizeof name, "reward %s", c->reward[i].name);
        rlhf__reward_tally_say(&a->run[i], name, log);
    }
    if (a->run) rlhf__reward_tally_say(&a->run[a->n], "the judge", log);
}

void rlhf__report_warn(struct rlhf__report *r, int64_t phase, const char *finding, const char *fmt,
                       ...) {
    char text[2048];
    va_list args;
    if (r->silent) return;
    r->warned = phase;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    rlhf__logf(r->log, RLHF_LOG_WARN, "phase %lld: %s", (long long)phase, text);
    rlhf__events_warning(r->events, phase, finding, text);
}
