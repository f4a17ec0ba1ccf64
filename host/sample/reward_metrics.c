// reward_metrics.c: see reward_metrics.h.
#include "sample/reward_metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void left_out(struct rlhf__reward_metrics *m) {
    const rlhf_host *host = m->reward->host;
    char text[96];
    if (m->warned || !host) return;
    m->warned = 1;
    snprintf(text, sizeof text,
             "it reports more than %d metrics in a phase; the others are left out",
             RLHF__MOST_METRICS);
    host->log(host, RLHF_LOG_WARN, text);
}

// Finds or adds it. NULL: the table is full, or memory ran out.
static struct rlhf__reward_metric *find(struct rlhf__reward_metrics *m, const char *name) {
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->item[i].name, name) == 0) return &m->item[i];
    if (m->n == RLHF__MOST_METRICS) {
        left_out(m);
        return NULL;
    }
    if (m->n == m->cap) {
        const size_t cap = m->cap ? 2 * m->cap : 8;
        struct rlhf__reward_metric *more = realloc(m->item, cap * sizeof *more);
        if (!more) return NULL;
        m->item = more;
        m->cap = cap;
    }
    struct rlhf__reward_metric *one = &m->item[m->n++];
    *one = (struct rlhf__reward_metric){0};
    snprintf(one->name, sizeof one->name, "%s", name);
    return one;
}

static void keep(void *arg, const char *name, double value) {
    struct rlhf__reward_metrics *m = arg;
    struct rlhf__reward_metric *one = find(m, name);
    if (one) {
        one->value = value;
        one->now = 1;
    } else if (m->n < RLHF__MOST_METRICS) { // no memory: it is reported at once
        rlhf__instance_report(m->reward, name, value);
    }
}

void rlhf__reward_metrics_begin(struct rlhf__reward_metrics *m,
                                const struct rlhf__instance *reward) {
    m->reward = reward;
    rlhf__instance_metrics_to(reward, keep, m);
}

void rlhf__reward_metrics_end(struct rlhf__reward_metrics *m, uint32_t rows) {
    rlhf__instance_metrics_to(m->reward, NULL, NULL);
    for (size_t i = 0; i < m->n; i++) {
        struct rlhf__reward_metric *one = &m->item[i];
        if (one->now && rows > 0) {
            one->sum += rows * one->value;
            one->weight += rows;
            one->last = one->value;
            one->calls++;
        }
        one->now = 0;
    }
}

void rlhf__reward_metrics_flush(struct rlhf__reward_metrics *m) {
    for (size_t i = 0; i < m->n; i++) {
        const struct rlhf__reward_metric *one = &m->item[i];
        if (one->calls == 0) continue;
        rlhf__instance_report(m->reward, one->name,
                              one->calls == 1 ? one->last : one->sum / one->weight);
    }
    m->n = 0;
}

void rlhf__reward_metrics_finish(struct rlhf__reward_metrics *m) {
    free(m->item);
    *m = (struct rlhf__reward_metrics){0};
}
