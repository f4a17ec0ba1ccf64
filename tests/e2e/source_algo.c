// source_algo.c: an algorithm that checks where each row comes from, for every source of rows: row
// i of the file, or prompt i, has the letter 'A' + i as its first capital letter. It also checks
// the phases. It raises the log-probs.
#include "support/plugin.h"

#include <rlhf/algo.h>

struct config {
    int64_t source, group_size, rounds, mismatched;
};

struct algo {
    const rlhf_host *host;
    const struct config *config;
    double rows, wrong; // numbers of the phase
    int64_t phase;
};

static const rlhf_opt opts[] = {
    RLHF_OPT_I64(struct config, source, 1, 1, 5, "rows"),
    RLHF_OPT_I64(struct config, group_size, 1, 1, 64, "responses per prompt"),
    RLHF_OPT_I64(struct config, rounds, 0, 0, 100, "rounds of further prompts"),
    RLHF_OPT_I64(struct config, mismatched, 0, 0, 1, "rows of another's completion"),
};

TEST_INSTANCE(struct algo)

static rlhf_status plan(void *self, const rlhf_run_info *run, rlhf_plan *out) {
    const struct config *c = ((const struct algo *)self)->config;
    (void)run;
    out->source = (int32_t)c->source;
    out->heads = RLHF_HEAD_LOGP;
    out->flags = c->mismatched ? RLHF_PLAN_MISMATCHED : 0;
    out->epochs = 1;
    out->minibatches = c->source == RLHF_SOURCE_ROLLOUT ? 2 : 1;
    out->group_size = (uint32_t)c->group_size;
    out->resample_rounds = (uint32_t)c->rounds;
    return RLHF_OK;
}

// In the tiny model, the token of a single letter is its byte. Responses have random tokens, so the
// letter is read from the prompt. In rows of plain text, the first token is the prompt.
static void check(struct algo *a, const int32_t *ids, int32_t n, int64_t source) {
    int32_t k = 0;
    while (k < n && (ids[k] < 'A' || ids[k] > 'Z'))
        k++;
    a->rows++;
    a->wrong += k == n || ids[k] - 'A' != source;
}

static int32_t length(const struct algo *a, const int32_t *offset, const int32_t *prompt_len,
                      uint32_t i) {
    const int prompts =
        a->config->source != RLHF_SOURCE_TEXT && a->config->source != RLHF_SOURCE_LABELED;
    return prompts ? prompt_len[i] : offset[i + 1] - offset[i];
}

static rlhf_status advantages(void *self, const rlhf_rollout *in, rlhf_advantages *out) {
    struct algo *a = self;
    (void)out;
    a->wrong += in->phase != a->phase;
    for (uint32_t i = 0; i < in->n; i++)
        check(a, in->ids + in->offset[i], length(a, in->offset, in->prompt_len, i), in->source[i]);
    return RLHF_OK;
}

static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    struct algo *a = self;
    a->wrong += in->phase != a->phase;
    for (uint32_t i = 0; i < in->n; i++) {
        check(a, in->ids + in->offset[i], length(a, in->offset, in->prompt_len, i), in->source[i]);
        for (int32_t t = in->offset[i] + in->prompt_len[i]; t < in->offset[i + 1]; t++) {
            out->loss -= (double)in->heads->logp[t] / (double)in->batch_tokens;
            out->d_heads->logp[t] = (float)(-1 / (double)in->batch_tokens);
        }
    }
    return RLHF_OK;
}

static rlhf_status minibatch_end(void *self, const rlhf_step_info *info, rlhf_step_out *out) {
    struct algo *a = self;
    (void)out;
    a->wrong += info->phase != a->phase;
    return RLHF_OK;
}

static rlhf_status phase_end(void *self, const rlhf_phase_info *info) {
    struct algo *a = self;
    a->wrong += info->phase != a->phase;
    a->phase = info->phase + 1;
    rlhf_metric_last(a->host, "test/rows", a->rows);
    rlhf_metric_last(a->host, "test/wrong", a->wrong);
    a->rows = a->wrong = 0;
    return RLHF_OK;
}

static const rlhf_algo_ops ops = {.size = sizeof ops,
                                  .plan = plan,
                                  .advantages = advantages,
                                  .loss = loss,
                                  .minibatch_end = minibatch_end,
                                  .phase_end = phase_end};
TEST_PLUGIN(RLHF_KIND_ALGO, "source_algo", .summary = "knows where rows come from",
            TEST_OPTIONS(opts), TEST_INSTANCES)
