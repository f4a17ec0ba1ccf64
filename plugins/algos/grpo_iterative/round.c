// round.c: see round.h.
#include "grpo_iterative/round.h"

enum { ROUND_BYTES = 24 };

int rlhf__round_step(struct rlhf__round *r, int64_t length) {
    r->phases++;
    if (r->phases < (uint64_t)length) return 0;
    r->phases = 0;
    r->iterations++;
    return 1;
}

rlhf_status rlhf__round_save(const struct rlhf__round *r, const rlhf_ostream *out) {
    const uint64_t word[] = {r->phases, r->iterations, r->fresh};
    uint8_t bytes[ROUND_BYTES];
    for (int i = 0; i < ROUND_BYTES; i++)
        bytes[i] = (uint8_t)(word[i / 8] >> (8 * (i % 8)));
    return out->write(out, bytes, sizeof bytes);
}

rlhf_status rlhf__round_load(const rlhf_host *host, struct rlhf__round *r, const rlhf_istream *in) {
    uint8_t bytes[ROUND_BYTES];
    uint64_t word[3] = {0};
    rlhf_status st = in->read(in, bytes, sizeof bytes);
    if (st < 0) return host->fail(host, st, "the saved state is shorter than 36 bytes");
    for (int i = 0; i < ROUND_BYTES; i++)
        word[i / 8] |= (uint64_t)bytes[i] << (8 * (i % 8));
    r->phases = word[0];
    r->iterations = word[1];
    r->fresh = word[2];
    return RLHF_OK;
}
