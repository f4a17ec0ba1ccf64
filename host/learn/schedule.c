// schedule.c: see schedule.h.
#include "learn/schedule.h"

#include <math.h>
#include <rlhf/exact.h>

double rlhf__schedule_factor(const struct rlhf__optim_config *c, int64_t phase, int64_t horizon) {
    int64_t ahead = c->warmup_from == RLHF__WARMUP_FROM_STEP;
    if (phase < c->warmup) return (double)(phase + ahead) / (double)c->warmup;
    int64_t span = horizon - c->warmup;
    double x = span > 0 ? (double)(phase - c->warmup) / (double)span : 1;
    if (x > 1) x = 1;
    switch (c->schedule) {
    case RLHF__SCHEDULE_LINEAR:
        return 1 - (1 - c->final_scale) * x;
    case RLHF__SCHEDULE_COSINE:
        return c->final_scale +
               (1 - c->final_scale) * 0.5 * (1 + rlhf_cos(3.14159265358979323846 * x));
    default:
        return 1;
    }
}
