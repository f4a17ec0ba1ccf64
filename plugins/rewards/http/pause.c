// pause.c: see pause.h.
#include "http/pause.h"

#include <math.h>

static const double first_line = 1, line_every = 60;

// Returns the delay after the k-th failure: backoff_s * 2^(k - 1), at most backoff_max_s, times a
// random factor from 0.5 to 1. The factor (jitter) prevents many runs from retrying at the same
// time.
static double delay(const struct rlhf__http_options *o, uint32_t k, rlhf_rng *jitter) {
    const double full = fmin(ldexp(o->backoff_s, k < 64 ? (int)k - 1 : 63), o->backoff_max_s);
    return full * (0.5 + 0.5 * rlhf_rng_next(jitter));
}

void rlhf__pause_failed(struct rlhf__pause *p, const struct rlhf__http_options *o, rlhf_rng *jitter,
                        double began, double now, double retry_after) {
    if (!p->failures) {
        p->since = now;
        p->next_line = now + first_line;
        p->said = 0;
    }
    if (!p->failures || began >= p->last_failed) {
        p->failures++;
        p->gate = now + delay(o, p->failures, jitter);
    }
    p->last_failed = now;
    p->gate = fmax(p->gate, now + retry_after);
    p->gate = fmin(p->gate, p->since + o->patience_s);
}

double rlhf__pause_answered(struct rlhf__pause *p, double now) {
    const double lasted = p->failures && p->said ? now - p->since : 0;
    p->failures = 0;
    p->gate = 0;
    return lasted;
}

double rlhf__pause_left(const struct rlhf__pause *p, const struct rlhf__http_options *o,
                        double now) {
    return fmax(p->since + o->patience_s - now, 0);
}

int rlhf__pause_over(const struct rlhf__pause *p, const struct rlhf__http_options *o, double now) {
    return p->failures && now >= p->since + o->patience_s;
}

int rlhf__pause_line_due(struct rlhf__pause *p, double now) {
    if (!p->failures || now < p->next_line) return 0;
    p->next_line = now + line_every;
    p->said = 1;
    return 1;
}
