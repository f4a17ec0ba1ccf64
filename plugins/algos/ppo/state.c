// state.c: what a resumed run needs of ppo.so: the KL controller's coefficient.
#include "ppo/ppo.h"

#include <math.h>
#include <string.h>

static const uint8_t magic[4] = {'R', 'P', 'P', 'O'};
enum { STATE_BYTES = 12 };

rlhf_status rlhf__ppo_save(void *self, const rlhf_ostream *out) {
    const struct rlhf__ppo *p = self;
    uint8_t bytes[STATE_BYTES];
    uint64_t bits;
    memcpy(&bits, &p->kl_coef, sizeof bits);
    memcpy(bytes, magic, sizeof magic);
    for (int i = 0; i < 8; i++)
        bytes[4 + i] = (uint8_t)(bits >> (8 * i));
    return out->write(out, bytes, sizeof bytes);
}

rlhf_status rlhf__ppo_load(void *self, const rlhf_istream *in, uint32_t state_version) {
    struct rlhf__ppo *p = self;
    const rlhf_host *h = p->host;
    if (state_version != RLHF__PPO_STATE_VERSION)
        return rlhf_failf(h, RLHF_E_UNSUPPORTED, "state version %u; this ppo reads version %d",
                          (unsigned)state_version, RLHF__PPO_STATE_VERSION);
    uint8_t bytes[STATE_BYTES];
    rlhf_status st = in->read(in, bytes, sizeof bytes);
    if (st < 0) return h->fail(h, st, "the saved state is shorter than 12 bytes");
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++)
        bits |= (uint64_t)bytes[4 + i] << (8 * i);
    double coef;
    memcpy(&coef, &bits, sizeof coef);
    if (memcmp(bytes, magic, sizeof magic) != 0 || !isfinite(coef) || coef < 0)
        return h->fail(h, RLHF_E_INVALID, "the saved state is damaged");
    // With a fixed coefficient the configuration decides, also when it changed since the save.
    if (p->opt.kl_controller == RLHF__PPO_KL_ADAPTIVE) p->kl_coef = coef;
    return RLHF_OK;
}
