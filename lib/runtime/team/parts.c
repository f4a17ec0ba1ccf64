// parts.c: see parts.h.
#include "team/parts.h"

#include <stdlib.h>
#include <string.h>

void rlhf__parts_finish(struct rlhf__parts *p) {
    free(p->bytes);
    free(p->at);
    *p = (struct rlhf__parts){0};
}

// After the headers are exchanged, the other ranks wait for this rank's bytes. So if this rank runs
// out of memory, the whole team is broken.
static rlhf_status make_room(struct rlhf__team *t, struct rlhf__parts *p, struct rlhf__error *err) {
    if (!p->at) return RLHF_E_NOMEM; // cannot happen: the barrier would have failed
    p->at[0] = 0;
    for (int32_t k = 0; k < t->ranks; k++)
        p->at[k + 1] = p->at[k] + rlhf__team_bytes(t, k);
    p->bytes = malloc((size_t)p->at[t->ranks] + 1);
    if (p->bytes) return RLHF_OK;
    t->broken = 1;
    return RLHF__NOMEM(err, "out of memory for %llu bytes of other ranks",
                       (unsigned long long)p->at[t->ranks]);
}

static rlhf_status exchange(struct rlhf__team *t, const struct rlhf__buf *own,
                            struct rlhf__parts *p, rlhf_block *block, struct rlhf__error *err) {
    uint64_t ticket = 0;
    if (!p->at || !p->bytes) return RLHF_E_NOMEM; // cannot happen
    char *mine = p->bytes + p->at[t->rank];
    if (own->len) memcpy(mine, own->data, own->len);
    for (int32_t k = 0; k < t->ranks; k++) {
        block[k] = (rlhf_block){mine, own->len};
        block[t->ranks + k] = (rlhf_block){p->bytes + p->at[k], p->at[k + 1] - p->at[k]};
    }
    RLHF_TRY(rlhf__team_exchange(t, block, block + t->ranks, &ticket, err));
    return rlhf__team_wait(t, ticket, err);
}

rlhf_status rlhf__parts_exchange(struct rlhf__team *t, enum rlhf__barrier barrier, int64_t same,
                                 const struct rlhf__buf *own, rlhf_status st,
                                 struct rlhf__parts *out, struct rlhf__error *err) {
    const struct rlhf__wish wish = {.same = same, .bytes = own->len};
    rlhf_block *block = calloc(2 * (size_t)t->ranks, sizeof *block);
    out->at = calloc((size_t)t->ranks + 1, sizeof *out->at);
    if (st == RLHF_OK) st = rlhf__buf_ok(own, err);
    if (st == RLHF_OK && (!block || !out->at))
        st = RLHF__NOMEM(err, "out of memory for %d ranks", t->ranks);
    st = rlhf__team_agree(t, barrier, &wish, st, err);
    if (st == RLHF_OK) st = make_room(t, out, err);
    if (st == RLHF_OK && block) st = exchange(t, own, out, block, err);
    free(block);
    return st;
}

rlhf_status rlhf__part_get(struct rlhf__part *p, void *dst, size_t n, struct rlhf__error *err) {
    if ((size_t)(p->end - p->at) < n)
        return rlhf__fail(err, RLHF_E_INTERNAL, "another rank sent too few bytes");
    if (n) memcpy(dst, p->at, n);
    p->at += n;
    return RLHF_OK;
}
