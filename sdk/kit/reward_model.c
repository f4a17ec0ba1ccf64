// reward_model.c: a fake "rlhf.reward_model/1" for which the test computes the rewards of tokens.
// See rlhf/test.h.
#include <rlhf/test.h>

// Returns the test's reward model, or NULL if the test does not offer one. The offered table is the
// first member of the reward model's struct, so both have the same address.
static struct rlhf_test_reward_model *offered(const rlhf_host *host) {
    union {
        const void *table;
        struct rlhf_test_reward_model *object;
    } u;
    u.table = host->service(host, RLHF_SVC_REWARD_MODEL);
    return u.object;
}

static rlhf_status do_open(const rlhf_host *host, const char *path, rlhf_reward_model **out) {
    struct rlhf_test_reward_model *m = offered(host);
    m->path = path;
    if (m->open_status < 0)
        return host->fail(host, m->open_status, "the test's reward model does not open");
    m->open_count++;
    *out = (rlhf_reward_model *)(void *)m;
    return RLHF_OK;
}

static void do_close(const rlhf_host *host, rlhf_reward_model *model) {
    if (model) offered(host)->open_count--;
}

// Computes the reward of each row. It is the mean over the row's response tokens or, with
// RLHF_POOL_LAST, the reward of the last response token. A row without response tokens gets the
// reward of its last prompt token.
static rlhf_status do_score(const rlhf_host *host, rlhf_reward_model *model, uint32_t n,
                            const int32_t *ids, const int32_t *offset, const int32_t *prompt_len,
                            int32_t pooling, float *seq, float *token) {
    struct rlhf_test_reward_model *m = offered(host);
    (void)model;
    if (m->score_status < 0)
        return host->fail(host, m->score_status, "the test's reward model fails");
    for (uint32_t i = 0; i < n; i++) {
        const int32_t end = offset[i + 1];
        int32_t at = offset[i] + prompt_len[i];
        double sum = 0, last = 0;
        for (int32_t t = offset[i]; token && t < at; t++)
            token[t] = 0;
        if (at >= end) at = end - 1;
        const int32_t count = end - at;
        for (; at < end; at++) {
            last = (double)m->token(m->context, ids[at]);
            sum += last;
            if (token && at >= offset[i] + prompt_len[i]) token[at] = (float)last;
        }
        seq[i] = (float)(pooling == 3 ? last : sum / count);
    }
    m->n_rows += n;
    return RLHF_OK;
}

void rlhf_test_reward_model_init(struct rlhf_test_reward_model *m) {
    memset(m, 0, sizeof *m);
    m->table.size = (uint32_t)sizeof m->table;
    m->table.open = do_open;
    m->table.close = do_close;
    m->table.score = do_score;
}
