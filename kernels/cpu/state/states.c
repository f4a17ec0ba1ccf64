// states.c: reads and checks the rows and the states of conv and delta. See states.h.
#include "states.h"

static rlhf_status read_slots(struct rlhf__cpu *cpu, const char *op, struct rlhf__states *out,
                              const rlhf_states *from, uint64_t bytes) {
    rlhf_states s;
    RLHF_TRY(rlhf__cpu_copy_in(cpu, op, &s, sizeof s, from, RLHF_SIZE_TO(rlhf_states, to)));
    if (s.stride <= 0 || s.stride % 64 || (uint64_t)s.stride < bytes)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "%s: states are %lld bytes apart, must be a multiple of 64 and at "
                              "least %llu",
                              op, (long long)s.stride, (unsigned long long)bytes);
    out->from = rlhf__cpu_i32(s.from);
    out->to = rlhf__cpu_i32(s.to);
    out->state = rlhf__cpu_mem(s.state);
    out->stride = (uint64_t)s.stride;
    for (uint32_t i = 0; i < out->n; i++)
        if (out->from[i] < -1 || out->to[i] < -1)
            return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                                  "%s: row %u has the states %d and %d, must be -1 or a slot", op,
                                  i, out->from[i], out->to[i]);
    return RLHF_OK;
}

static rlhf_status check_rows(struct rlhf__cpu *cpu, const char *op, const struct rlhf__states *s,
                              const int32_t *base) {
    size_t head = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const int64_t n = (int64_t)s->offset[i + 1] - s->offset[i];
        if (s->offset[i] < 0 || n < 0 || n > s->max_q || (uint32_t)s->offset[i + 1] > s->total)
            return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                                  "%s: row %u has %lld tokens, at most %u are declared (%u in all)",
                                  op, i, (long long)n, s->max_q, s->total);
        if (!rlhf__states_shares(s, i))
            head = i;
        else if (i == 0 || base[i] != s->offset[head] ||
                 (uint32_t)s->prefix_len[i] != rlhf__states_tokens(s, head))
            return rlhf__cpu_fail(cpu, RLHF_E_UNSUPPORTED,
                                  "%s: row %u has a prefix of %d tokens at %d, must be the row "
                                  "that it and its neighbors follow: %u at %d",
                                  op, i, s->prefix_len[i], base[i], rlhf__states_tokens(s, head),
                                  s->offset[head]);
    }
    return RLHF_OK;
}

rlhf_status rlhf__states_read(struct rlhf__cpu *cpu, const char *op, struct rlhf__states *out,
                              const rlhf_ragged *rows, const rlhf_states *states, uint64_t bytes) {
    rlhf_ragged r;
    RLHF_TRY(rlhf__cpu_copy_in(cpu, op, &r, sizeof r, rows, RLHF_SIZE_TO(rlhf_ragged, prefix_len)));
    if (!r.prefix_base != !r.prefix_len)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "%s: prefix_base and prefix_len must both be NULL or none", op);
    *out = (struct rlhf__states){.offset = rlhf__cpu_i32(r.offset),
                                 .prefix_len = states ? NULL : rlhf__cpu_i32(r.prefix_len),
                                 .n = r.n,
                                 .total = r.total,
                                 .max_q = r.max_q};
    if (states) RLHF_TRY(read_slots(cpu, op, out, states, bytes));
    return check_rows(cpu, op, out, rlhf__cpu_i32(r.prefix_base));
}
