// tally.c: see tally.h.
#include "process/tally.h"

#include <rlhf/log.h>

static void add(struct rlhf__tally *t, const char *name, double sum, uint64_t count) {
    uint32_t i = 0;
    while (i < t->n && strcmp(t->of[i].name, name) != 0)
        i++;
    if (i == RLHF__TALLY_MOST) {
        t->left_out += (uint32_t)count;
        return;
    }
    if (i == t->n) {
        snprintf(t->of[i].name, sizeof t->of[i].name, "%s", name);
        t->of[i].sum = 0;
        t->of[i].count = 0;
        t->n++;
    }
    t->of[i].sum += sum;
    t->of[i].count += count;
}

void rlhf__tally_add(struct rlhf__tally *t, const char *name, double value) {
    add(t, name, value, 1);
}

void rlhf__tally_merge(struct rlhf__tally *t, const struct rlhf__tally *other) {
    for (uint32_t i = 0; i < other->n; i++)
        add(t, other->of[i].name, other->of[i].sum, other->of[i].count);
    t->left_out += other->left_out;
}

void rlhf__tally_report(const struct rlhf__tally *t, const rlhf_host *host) {
    for (uint32_t i = 0; i < t->n; i++)
        rlhf_metric_mean(host, t->of[i].name, t->of[i].sum / (double)t->of[i].count,
                         (double)t->of[i].count);
    if (t->left_out)
        rlhf_logf(host, RLHF_LOG_WARN, "%u values of metrics are left out: there are over %d names",
                  t->left_out, RLHF__TALLY_MOST);
}
