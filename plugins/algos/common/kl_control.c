// kl_control.c: see kl_control.h.
#include "common/kl_control.h"

#include "common/kl.h"

#include <math.h>
#include <rlhf/log.h>
#include <string.h>

rlhf_status rlhf__kl_control_init(const rlhf_host *host, struct rlhf__kl_control *c) {
    if (c->estimator == RLHF__KL_FULL && c->placement != RLHF__KL_IN_LOSS)
        return rlhf_failf(host, RLHF_E_INVALID,
                          "kl_estimator full needs kl_placement loss, found %s; elsewhere use k1, "
                          "k2 or k3",
                          rlhf__kl_placement_names[c->placement]);
    if (c->controller == RLHF__KL_ADAPTIVE && (c->placement == RLHF__KL_NOWHERE || c->start <= 0))
        return host->fail(host, RLHF_E_INVALID,
                          "kl_controller adaptive needs kl_placement reward or loss and a "
                          "kl_coef above 0");
    c->coef = c->placement == RLHF__KL_NOWHERE ? 0 : c->start;
    return RLHF_OK;
}

rlhf_status rlhf__kl_control_plan(const rlhf_host *host, const struct rlhf__kl_control *c,
                                  uint32_t n) {
    if (c->controller != RLHF__KL_ADAPTIVE || 0.2 * n < c->horizon) return RLHF_OK;
    return rlhf_failf(host, RLHF_E_INVALID,
                      "kl_horizon is %g; with %u sequences per phase it must be above %g",
                      c->horizon, (unsigned)n, 0.2 * n);
}

void rlhf__kl_control_update(struct rlhf__kl_control *c, const struct rlhf__pg_rollout_sums *r) {
    int64_t n = c->unit == RLHF__KL_PER_TOKEN ? r->kl_tokens : r->kl_sequences;
    if (c->controller != RLHF__KL_ADAPTIVE || n == 0 || !isfinite(r->kl)) return;
    c->coef =
        rlhf__kl_adapt(c->coef, r->kl / (double)n, c->target, (double)r->kl_sequences, c->horizon);
}

rlhf_status rlhf__kl_control_save(const struct rlhf__kl_control *c, const char magic[4],
                                  const rlhf_ostream *out) {
    uint8_t bytes[RLHF__KL_CONTROL_BYTES];
    uint64_t bits;
    memcpy(&bits, &c->coef, sizeof bits);
    memcpy(bytes, magic, 4);
    for (int i = 0; i < 8; i++)
        bytes[4 + i] = (uint8_t)(bits >> (8 * i));
    return out->write(out, bytes, sizeof bytes);
}

rlhf_status rlhf__kl_control_load(const rlhf_host *h, struct rlhf__kl_control *c,
                                  const char magic[4], const rlhf_istream *in) {
    uint8_t bytes[RLHF__KL_CONTROL_BYTES];
    rlhf_status st = in->read(in, bytes, sizeof bytes);
    if (st < 0) return h->fail(h, st, "the saved state is shorter than 12 bytes");
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++)
        bits |= (uint64_t)bytes[4 + i] << (8 * i);
    double coef;
    memcpy(&coef, &bits, sizeof coef);
    if (memcmp(bytes, magic, 4) != 0 || !isfinite(coef) || coef < 0)
        return h->fail(h, RLHF_E_INVALID, "the saved state is damaged");
    if (c->controller == RLHF__KL_ADAPTIVE) c->coef = coef;
    return RLHF_OK;
}
