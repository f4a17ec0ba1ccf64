// best.c: see best.h.
#include "keep/best.h"

#include <math.h>
#include <string.h>

void rlhf__best_see(struct rlhf__best *b, const struct rlhf__checkpoint_config *c,
                    const struct rlhf__metrics *m) {
    if (!c->best[0] || !rlhf__metrics_get(m, c->best, &b->now)) b->now = NAN;
}

int rlhf__best_offer(struct rlhf__best *b, const struct rlhf__checkpoint_config *c, int64_t phase) {
    if (!c->best[0]) return 1;
    if (!isfinite(b->now)) return 0;
    int better = c->best_mode == RLHF__BEST_MAX ? b->now > b->value : b->now < b->value;
    if (b->phase > 0 && !better) return 1;
    b->phase = phase;
    b->value = b->now;
    return 1;
}

json_t *rlhf__best_save(const struct rlhf__best *b, const struct rlhf__checkpoint_config *c) {
    if (!c->best[0] || b->phase == 0) return NULL;
    return json_pack("{s:s, s:i, s:I, s:f}", "metric", c->best, "mode", (int)c->best_mode, "phase",
                     (json_int_t)b->phase, "value", b->value);
}

rlhf_status rlhf__best_load(struct rlhf__best *b, const struct rlhf__checkpoint_config *c,
                            const json_t *v, struct rlhf__error *err) {
    const char *metric = NULL;
    int mode = 0;
    json_int_t phase = 0;
    double value = 0;
    json_error_t why;
    *b = (struct rlhf__best){0};
    if (!v || !c->best[0]) return RLHF_OK;
    // json_unpack takes a non-const pointer but changes nothing.
    if (json_unpack_ex((json_t *)(uintptr_t)v, &why, 0, "{s:s, s:i, s:I, s:F}", "metric", &metric,
                       "mode", &mode, "phase", &phase, "value", &value) != 0)
        return rlhf__fail(err, RLHF_E_INVALID, "best: %s", why.text);
    if (phase < 1) return rlhf__fail(err, RLHF_E_INVALID, "best: the phase is %lld", phase);
    if (strcmp(metric, c->best) == 0 && mode == c->best_mode) {
        b->phase = phase;
        b->value = value;
    }
    return RLHF_OK;
}
