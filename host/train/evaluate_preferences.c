// evaluate_preferences.c: rlhf__evaluate_preferences of evaluate.h.
#include "train/evaluate.h"
#include "train/preference_source.h"

#include <math.h>
#include <stdlib.h>

#define CHUNK_ROWS 64

// One row's k rewards, the preferred one being r[best].
static void count_row(const float *r, int32_t k, int32_t best,
                      struct rlhf__preference_quality *out) {
    double top = (double)r[best], sum = 0, others = 0;
    int right = 1;
    for (int32_t j = 0; j < k; j++) {
        if ((double)r[j] > top) top = (double)r[j];
        if (j == best) continue;
        others += (double)r[j];
        right &= r[j] < r[best];
    }
    for (int32_t j = 0; j < k; j++)
        sum += exp((double)r[j] - top);
    out->rows++;
    out->correct += right;
    out->nats += top + log(sum) - (double)r[best];
    out->margin += (double)r[best] - others / (double)(k - 1);
}

static rlhf_status score_rows(const struct rlhf__reward_model *rm,
                              const struct rlhf__preferences *set, const int64_t *pick, uint32_t n,
                              struct rlhf__preference_quality *out, struct rlhf__error *err) {
    struct rlhf__episodes e = {0};
    rlhf_status st = rlhf__preference_rows(set, pick, n, &e, err);
    if (st != RLHF_OK) return st;
    st = rlhf__reward_model_score(rm, e.n, e.ids, e.offset, e.prompt_len, 0, e.score, NULL, err);
    uint32_t at = 0;
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++) {
        struct rlhf__preference p = rlhf__preferences_get(set, pick[i]);
        count_row(e.score + at, p.n, p.best, out);
        at += (uint32_t)p.n;
    }
    rlhf__episodes_finish(&e);
    return st;
}

rlhf_status rlhf__evaluate_preferences(const struct rlhf__reward_model *rm,
                                       const struct rlhf__preferences *set,
                                       struct rlhf__preference_quality *out,
                                       struct rlhf__error *err) {
    int64_t rows = rlhf__preferences_count(set), pick[CHUNK_ROWS];
    rlhf_status st = RLHF_OK;
    *out = (struct rlhf__preference_quality){0};
    for (int64_t at = 0; st == RLHF_OK && at < rows; at += CHUNK_ROWS) {
        uint32_t n = (uint32_t)(rows - at < CHUNK_ROWS ? rows - at : CHUNK_ROWS);
        for (uint32_t i = 0; i < n; i++)
            pick[i] = at + i;
        st = score_rows(rm, set, pick, n, out, err);
    }
    return st;
}
