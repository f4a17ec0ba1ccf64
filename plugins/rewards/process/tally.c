// tally.c: see tally.h.
#include "process/tally.h"

#include <rlhf/log.h>

void rlhf__tally_add(struct rlhf__tally *t, const char *name, double value) {
    uint32_t i = 0;
    while (i < t->n && strcmp(t->of[i].name, name) != 0)
        i++;
    if (i == RLHF__TALLY_MOST) {
        t->left_out++;
        return;
    }
    if (i == t->n) {
        snprintf(t->of[i].name, sizeof t->of[i].name, "%s", name);
        t->of[i].sum = 0;
        t->of[i].count = 0;
        t->n++;
    }
    t->of[i].sum += value;
    t->of[i].count++;
}

void rlhf__tally_report(const struct rlhf__tally *t, const rlhf_host *host) {
    for (uint32_t i = 0; i < t->n; i++)
        host->metric(host, t->of[i].name, t->of[i].sum / (double)t->of[i].count);
    if (t->left_out)
        rlhf_logf(host, RLHF_LOG_WARN, "%u values of metrics are left out: there are over %d names",
                  t->left_out, RLHF__TALLY_MOST);
}
