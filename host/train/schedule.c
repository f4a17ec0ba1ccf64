// schedule.c: see schedule.h.
#include "train/schedule.h"

#include <math.h>

static double decay(const struct rlhf__schedule *s, double x) {
    if (x < 0) x = 0;
    if (x > 1) x = 1;
    switch (s->kind) {
    case RLHF__SCHEDULE_LINEAR:
        return 1 - (1 - s->final_scale) * x;
    case RLHF__SCHEDULE_COSINE:
        return s->final_scale + (1 - s->final_scale) * 0.5 * (1 + cos(3.14159265358979323846 * x));
    default:
        return 1;
    }
}

double rlhf__schedule_phase(const struct rlhf__schedule *s, int64_t phase, int64_t horizon) {
    if (phase < s->warmup) return (double)(phase + 1) / (double)s->warmup;
    int64_t span = horizon - s->warmup;
    return decay(s, span > 0 ? (double)(phase - s->warmup) / (double)span : 1);
}

double rlhf__schedule_progress(const struct rlhf__schedule *s, int64_t phase, double progress) {
    double warm = phase < s->warmup ? (double)(phase + 1) / (double)s->warmup : 1;
    return warm * decay(s, progress);
}
