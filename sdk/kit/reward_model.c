// reward_model.c: a fake "rlhf.reward_model/1" for which the test computes the rewards of tokens.
// See rlhf/test.h.
#include <rlhf/test.h>

// Returns the test's reward model, or NULL if the test does not offer one.
static struct rlhf_test_reward_model *offered(const rlhf_host *host) {
    const rlhf_reward_model_service *table =
        (const rlhf_reward_model_service *)host->service(host, RLHF_SVC_REWARD_MODEL);
    return (struct rlhf_test_reward_model *)(table ? table->self : NULL);
}

static rlhf_status do_open(const rlhf_host *host, const rlhf_reward_model_open *how,
                           rlhf_reward_model **out) {
    struct rlhf_test_reward_model *m = offered(host);
    m->path = how->path;
    *out = NULL;
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
static rlhf_status do_score(const rlhf_host *host, rlhf_reward_model *model,
                            const rlhf_reward_model_in *in, const rlhf_reward_model_out *out) {
    struct rlhf_test_reward_model *m = offered(host);
    const int32_t *offset = in->offset, *prompt_len = in->prompt_len;
    float *token = out->token;
    (void)model;
    if (m->score_status < 0)
        return host->fail(host, m->score_status, "the test's reward model fails");
    for (uint32_t i = 0; i < in->n; i++) {
        const int32_t end = offset[i + 1];
        int32_t at = offset[i] + prompt_len[i];
        double sum = 0, last = 0;
        for (int32_t t = offset[i]; token && t < at; t++)
            token[t] = 0;
        if (at >= end) at = end - 1;
        const int32_t count = end - at;
        for (; at < end; at++) {
            last = (double)m->token(m->context, in->ids[at]);
            sum += last;
            if (token && at >= offset[i] + prompt_len[i]) token[at] = (float)last;
        }
        out->seq[i] = (float)(in->pooling == RLHF_POOL_LAST ? last : sum / count);
    }
    m->n_rows += in->n;
    return RLHF_OK;
}

void rlhf_test_reward_model_init(struct rlhf_test_reward_model *m) {
    memset(m, 0, sizeof *m);
    m->table.size = (uint32_t)sizeof m->table;
    m->table.self = m;
    m->table.open = do_open;
    m->table.close = do_close;
    m->table.score = do_score;
}
