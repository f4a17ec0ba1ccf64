// combine.c: see combine.h.
#include "rubric/combine.h"

#include <math.h>
#include <rlhf/log.h>
#include <stdio.h>

// The result for one row.
struct outcome {
    double reward;
    uint32_t lost; // number of lost criteria; the row fails if all of them or a gate are lost
    int32_t failed, closed;
};

static struct outcome outcome_of(const struct rlhf__asks *a, uint32_t i) {
    struct outcome o = {.reward = 0};
    double sum = 0, weights = 0;
    for (uint32_t k = 0; k < a->criteria->n; k++) {
        const struct rlhf__criterion *c = &a->criteria->of[k];
        const double score = rlhf__asks_score(a, i, k);
        if (isnan(score)) {
            o.lost++;
            o.failed |= c->gate > 0;
            continue;
        }
        sum += c->weight * score;
        weights += c->weight;
        o.closed |= score < c->gate;
    }
    o.failed |= o.lost == a->criteria->n;
    if (!o.closed && weights > 0) o.reward = sum / weights;
    if (o.closed) o.failed = 0; // a closed gate stays closed, whatever the lost scores are
    return o;
}

void rlhf__combine_say_lost(const struct rlhf__asks *a) {
    for (uint32_t k = 0; k < a->criteria->n; k++) {
        const struct rlhf__ask *first = NULL;
        uint32_t n = 0;
        for (uint32_t at = 0; at < a->n; at++) {
            if (a->ask[at].criterion != k || !isnan(a->ask[at].score)) continue;
            if (!first) first = &a->ask[at];
            n++;
        }
        if (first)
            rlhf_logf(a->host, RLHF_LOG_WARN, "criterion %s: %u question%s lost: %.400s",
                      a->criteria->of[k].name, n, n > 1 ? "s are" : " is", first->why);
    }
}

void rlhf__combine_report(const struct rlhf__asks *a) {
    char name[96];
    for (uint32_t k = 0; k < a->criteria->n; k++) {
        double sum = 0;
        uint32_t n = 0;
        for (uint32_t i = 0; i < a->in->n; i++) {
            const double score = rlhf__asks_score(a, i, k);
            if (isnan(score)) continue;
            sum += score;
            n++;
        }
        snprintf(name, sizeof name, "criterion_%s", a->criteria->of[k].name);
        if (n) rlhf_metric_mean(a->host, name, sum / n, n);
        snprintf(name, sizeof name, "lost_%s", a->criteria->of[k].name);
        rlhf_metric_add(a->host, name, (double)(a->in->n - n));
    }
    rlhf_metric_add(a->host, "asked", a->n);
}

// Record the answers. Lost criteria are recorded too, except those of failed rows: the host may ask
// about a failed row again.
rlhf_status rlhf__combine_record(struct rlhf__record *r, const struct rlhf__asks *a) {
    for (uint32_t at = 0; at < a->n; at++) {
        const struct rlhf__ask *ask = &a->ask[at];
        const int lost = isnan(ask->score);
        if (lost && outcome_of(a, ask->row).failed) continue;
        RLHF_TRY(rlhf__record_add(r, ask->question, a->criteria->of[ask->criterion].name,
                                  ask->score, lost ? ask->why : NULL));
    }
    return RLHF_OK;
}

rlhf_status rlhf__combine(const struct rlhf__asks *a, const rlhf_reward_out *out) {
    uint32_t failed = 0;
    for (uint32_t i = 0; i < a->in->n; i++) {
        const struct outcome o = outcome_of(a, i);
        out->seq[i] = o.failed ? NAN : (float)o.reward;
        if (RLHF_HAS(rlhf_reward_out, out, failed)) out->failed[i] = (uint8_t)o.failed;
        failed += (uint32_t)o.failed;
    }
    if (!failed) return RLHF_OK;
    const char *why = "";
    for (uint32_t at = 0; at < a->n && !*why; at++)
        why = a->ask[at].why;
    const rlhf_status st = rlhf_failf(a->host, RLHF_E_IO,
                                      "%u row%s without a criterion that is a gate, or without any "
                                      "answer: %.400s",
                                      failed, failed > 1 ? "s are" : " is", why);
    return failed < a->in->n && RLHF_HAS(rlhf_reward_out, out, failed) ? RLHF_OK : st;
}
