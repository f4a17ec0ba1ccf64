// deal.c: see deal.h.
#include "batch/deal.h"

static uint32_t count_groups(const struct rlhf__rows *e) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n; i = rlhf__rows_group_end(e, i))
        n++;
    return n;
}

// Returns the number of tokens that the model must compute for rows [from, to).
static int64_t cost(const struct rlhf__rows *e, uint32_t from, uint32_t to, int share) {
    int64_t sum = 0;
    for (uint32_t i = from; i < to; i++) {
        sum += e->offset[i + 1] - e->offset[i];
        if (share && i > from && rlhf__rows_same_prompt(e, i)) sum -= e->prompt_len[i] - 1;
    }
    return sum;
}

void rlhf__deal(const struct rlhf__rows *e, uint32_t shards, int share, uint32_t *first) {
    const int whole = e->flags & RLHF__WHOLE_GROUPS || (share && count_groups(e) >= shards);
    int64_t all = 0, before = 0;
    uint32_t s = 0;
    for (uint32_t i = 0, to; i < e->n; i = to) {
        to = whole ? rlhf__rows_group_end(e, i) : i + 1;
        all += cost(e, i, to, share);
    }
    first[0] = 0;
    for (uint32_t i = 0, to; i < e->n; i = to) {
        to = whole ? rlhf__rows_group_end(e, i) : i + 1;
        const int64_t own = cost(e, i, to, share);
        // Choose the shard that contains the unit's middle, which is at (before + own / 2) / all.
        const int64_t of = all > 0 ? (2 * before + own) * (int64_t)shards / (2 * all) : 0;
        while ((int64_t)s < of && s + 1 < shards)
            first[++s] = i;
        before += own;
    }
    while (s < shards)
        first[++s] = e->n;
}
