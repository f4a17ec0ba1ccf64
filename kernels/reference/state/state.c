// state.c: reading the rows and states of conv and delta. See state.h.
#include "state.h"
#include "number.h"
#include "ragged.h"

rlhf_status rlhf__ref_rows_read(struct rlhf__ref *r, const char *op, struct rlhf__ref_rows *out,
                                const rlhf_ragged *rows, const rlhf_states *states,
                                uint64_t bytes) {
    *out = (struct rlhf__ref_rows){.bytes = bytes};
    RLHF_TRY(rlhf__ref_ragged_read(r, op, &out->g, rows));
    if (!states) return RLHF_OK;
    out->with_states = 1;
    RLHF_TRY(
        rlhf__ref_copy_in(r, op, &out->s, sizeof out->s, states, RLHF_SIZE_TO(rlhf_states, to)));
    out->g.prefix_base = out->g.prefix_len = NULL;
    if (out->s.stride > 0 && out->s.stride % 64 == 0 && (uint64_t)out->s.stride >= bytes)
        return RLHF_OK;
    return rlhf__ref_fail(r, RLHF_E_INVALID,
                          "states are %lld bytes apart, must be a multiple of 64 and at least %llu",
                          (long long)out->s.stride, (unsigned long long)bytes);
}

struct rlhf__ref_row rlhf__ref_row_at(const struct rlhf__ref_rows *w, uint32_t i) {
    const int32_t *o = rlhf__ref_i32(w->g.offset);
    struct rlhf__ref_row row = {(uint64_t)o[i], (uint64_t)(o[i + 1] - o[i]), 0, 0};
    if (!w->g.prefix_len) return row;
    row.np = (uint64_t)rlhf__ref_i32(w->g.prefix_len)[i];
    if (row.np) row.p0 = (uint64_t)rlhf__ref_i32(w->g.prefix_base)[i];
    return row;
}

static void *slot(const struct rlhf__ref_rows *w, rlhf_dev index, uint32_t i) {
    const int32_t n = w->with_states ? rlhf__ref_i32(index)[i] : -1;
    return n < 0 ? NULL
                 : rlhf__ref_mem(rlhf_dev_at(w->s.state, (uint64_t)n * (uint64_t)w->s.stride));
}

void *rlhf__ref_state_from(const struct rlhf__ref_rows *w, uint32_t i) {
    return slot(w, w->s.from, i);
}

void *rlhf__ref_state_to(const struct rlhf__ref_rows *w, uint32_t i) { return slot(w, w->s.to, i); }

static rlhf_status check_slot(struct rlhf__ref *r, const struct rlhf__ref_rows *w, uint32_t i,
                              const char *name, int32_t n) {
    const uint64_t room = rlhf__ref_extent(r, w->s.state);
    if (n == -1 || (n >= 0 && (uint64_t)n * (uint64_t)w->s.stride + w->bytes <= room))
        return RLHF_OK;
    return rlhf__ref_fail(r, RLHF_E_INVALID,
                          "%s[%u] is %d, must be -1 or a slot of %llu bytes inside the states",
                          name, i, n, (unsigned long long)w->bytes);
}

rlhf_status rlhf__ref_rows_check(struct rlhf__ref *r, const struct rlhf__ref_rows *w) {
    const int32_t *o = rlhf__ref_i32(w->g.offset);
    struct rlhf__ref_row head = {0};
    if (o[0] != 0 || o[w->g.n] < 0 || (uint32_t)o[w->g.n] != w->g.total)
        return rlhf__ref_fail(r, RLHF_E_INVALID, "offsets run from %d to %d, total is %u", o[0],
                              o[w->g.n], w->g.total);
    for (uint32_t i = 0; i < w->g.n; i++) {
        if (o[i + 1] < o[i] || (uint32_t)(o[i + 1] - o[i]) > w->g.max_q)
            return rlhf__ref_fail(r, RLHF_E_INVALID, "row %u has tokens %d to %d, max_q is %u", i,
                                  o[i], o[i + 1], w->g.max_q);
        if (w->with_states) {
            RLHF_TRY(check_slot(r, w, i, "from", rlhf__ref_i32(w->s.from)[i]));
            RLHF_TRY(check_slot(r, w, i, "to", rlhf__ref_i32(w->s.to)[i]));
        }
        const struct rlhf__ref_row row = rlhf__ref_row_at(w, i);
        if (row.np == 0)
            head = row;
        else if (row.p0 != head.t0 || row.np != head.n)
            return rlhf__ref_fail(
                r, RLHF_E_UNSUPPORTED,
                "row %u: prefix of %llu tokens at %llu; must be the row before the ones that share "
                "it, %llu tokens at %llu",
                i, (unsigned long long)row.np, (unsigned long long)row.p0,
                (unsigned long long)head.n, (unsigned long long)head.t0);
    }
    return RLHF_OK;
}

uint64_t rlhf__ref_strided(uint64_t rows, int64_t stride, uint64_t width, int32_t dtype) {
    return rows ? ((rows - 1) * (uint64_t)stride + width) * rlhf_dtype_size(dtype) : 0;
}
