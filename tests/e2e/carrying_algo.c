// carrying_algo.c: an algorithm that checks what reaches loss() with a row, in which groups rows
// arrive, each reward's own score, and the host's numbers at the end of a phase. It reports how
// often something was wrong. Its loss is the mean log-prob of the response tokens times the score.
#include "support/plugin.h"

#include <rlhf/algo.h>

#include <math.h>

enum { GROUP = 4, ROWS = 2, MOST = 64 };

struct config {
    int32_t together, scope, each, still, taints, unused;
    int64_t minibatches, past;
};

static const rlhf_opt opts[] = {
    RLHF_OPT_BOOL(struct config, together, 0, "loss() gets whole groups"),
    RLHF_OPT_BOOL(struct config, scope, 0, "advantages() gets minibatches"),
    RLHF_OPT_BOOL(struct config, each, 0, "use each reward's score"),
    RLHF_OPT_BOOL(struct config, still, 0, "every third row has no gradient, every fifth is out"),
    RLHF_OPT_BOOL(struct config, taints, 0, "give a row without a gradient one"),
    RLHF_OPT_I64(struct config, minibatches, 2, 1, 100, "minibatches a phase"),
    RLHF_OPT_I64(struct config, past, 0, 0, 100, "more numbers to carry for each row"),
};

struct algo {
    const rlhf_host *host;
    const struct config *config;
    double calls, parts, wrong, out; // of the phase; parts: groups of which loss() had a part
    double score, tokens, rows;      // sums of advantages()
    double loss, steps;
    uint32_t left[MOST]; // by group: its rows that are not excluded
};

TEST_INSTANCE(struct algo)

static rlhf_status plan(void *self, const rlhf_run_info *info, rlhf_plan *out) {
    const struct algo *a = self;
    (void)info;
    out->source = RLHF_SOURCE_ROLLOUT;
    out->heads = RLHF_HEAD_LOGP;
    if (a->config->together) out->flags |= RLHF_PLAN_GROUPS_TOGETHER;
    if (a->config->scope) out->flags |= RLHF_PLAN_MINIBATCH_SCOPE | RLHF_PLAN_WHOLE_GROUPS;
    if (a->config->each) out->flags |= RLHF_PLAN_EACH_REWARD;
    out->epochs = 2;
    out->minibatches = (uint32_t)a->config->minibatches;
    out->group_size = GROUP;
    out->carry_rows = ROWS + (uint32_t)a->config->past;
    out->carry_tokens = 1;
    return RLHF_OK;
}

// Numbers that a float cannot hold.
static double row_number(uint32_t row, int k) { return 1.0 / 3 + row + 1000 * k; }
static double token_number(uint32_t row, int32_t at) { return row + at / 7.0; }

static int32_t length(const int32_t *offset, uint32_t i) { return offset[i + 1] - offset[i]; }

// The scores of all rewards, times their weights, are the row's total reward.
static int wrong_rewards(const struct algo *a, const rlhf_rollout *in, uint32_t i) {
    double all = (double)in->score[i], sum = 0;
    if (!a->config->each) return in->reward_score || in->n_rewards;
    if (in->n_rewards != 2 || strcmp(in->reward_name[1], "period_count") != 0) return 1;
    for (int32_t t = in->offset[i] + in->prompt_len[i]; t < in->offset[i + 1]; t++)
        all += (double)in->token_reward[t];
    for (uint32_t k = 0; k < in->n_rewards; k++)
        sum += in->reward_weight[k] * (double)in->reward_score[i * in->n_rewards + k];
    return fabs(sum - all) > 1e-5;
}

static uint8_t use_of(const struct algo *a, uint32_t row) {
    if (!a->config->still) return RLHF_USE_TRAINS;
    return row % 5 == 1 ? RLHF_USE_EXCLUDED : row % 3 == 0 ? RLHF_USE_NO_GRADIENT : RLHF_USE_TRAINS;
}

static rlhf_status advantages(void *self, const rlhf_rollout *in, rlhf_advantages *out) {
    struct algo *a = self;
    const uint32_t each = ROWS + (uint32_t)a->config->past;
    for (uint32_t i = 0; i < in->n; i++) {
        const uint32_t row = in->row[i];
        a->wrong += (!a->config->scope && row != i) || wrong_rewards(a, in, i);
        a->wrong += in->batch_score && in->batch_score[row] != in->score[i];
        out->use[i] = use_of(a, row);
        a->left[in->group[i] % MOST] += !a->config->scope && out->use[i] != RLHF_USE_EXCLUDED;
        a->score += (double)in->score[i];
        a->rows++;
        for (uint32_t k = 0; k < ROWS; k++)
            out->carry_row[i * each + k] = row_number(row, (int)k);
        for (int32_t t = in->offset[i]; t < in->offset[i + 1]; t++) {
            const int response = t >= in->offset[i] + in->prompt_len[i];
            a->tokens += response;
            if (response && out->use[i] == RLHF_USE_TRAINS) out->advantage[t] = in->score[i];
            out->carry_token[t] = token_number(row, t - in->offset[i]);
        }
    }
    return RLHF_OK;
}

static void check_row(struct algo *a, const rlhf_loss_in *in, uint32_t i) {
    const uint32_t row = in->row[i], each = ROWS + (uint32_t)a->config->past;
    a->out += use_of(a, row) == RLHF_USE_EXCLUDED;
    for (uint32_t k = 0; k < ROWS; k++)
        a->wrong += in->carry_row[i * each + k] != row_number(row, (int)k);
    for (int32_t t = 0; t < length(in->offset, i); t++)
        a->wrong += in->carry_token[in->offset[i] + t] != token_number(row, t);
}

static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    struct algo *a = self;
    a->calls++;
    for (uint32_t i = 0, end; i < in->n; i = end) {
        for (end = i; end < in->n && in->group[end] == in->group[i];)
            check_row(a, in, end++);
        a->parts += !a->config->scope && end - i != a->left[in->group[i] % MOST];
    }
    for (uint32_t i = 0; i < in->n; i++)
        for (int32_t t = in->offset[i] + in->prompt_len[i]; t < in->offset[i + 1]; t++) {
            const double w = -(double)in->advantage[t] / (double)in->batch_tokens;
            out->loss += w * (double)in->heads->logp[t];
            out->d_heads->logp[t] = (float)w;
            if (a->config->taints && use_of(a, in->row[i]) == RLHF_USE_NO_GRADIENT)
                out->d_heads->logp[t] = 1;
        }
    return RLHF_OK;
}

static rlhf_status minibatch_end(void *self, const rlhf_step_info *step, rlhf_step_out *out) {
    struct algo *a = self;
    a->wrong += out->stop != 0;
    a->loss += step->loss;
    a->steps++;
    return RLHF_OK;
}

static int far(double x, double y) { return fabs(x - y) > 1e-5 * (1 + fabs(y)); }

// With advantages() of minibatches, each epoch counts the rows again.
static rlhf_status phase_end(void *self, const rlhf_phase_info *info) {
    struct algo *a = self;
    const double times = a->config->scope ? 2 : 1;
    a->wrong += info->n != a->rows / times || (double)info->tokens != a->tokens / times;
    a->wrong += far(info->score, a->score / a->rows) || !isnan(info->kl);
    a->wrong += far(info->loss, a->loss / a->steps);
    a->wrong += (double)(info->phase_steps + info->skipped) != a->steps || info->phases != 2;
    a->wrong += info->update_seconds <= 0 || info->rollout_seconds <= 0;
    a->wrong += info->steps < info->phase_steps * (info->phase + 1) - info->skipped;
    rlhf_metric_last(a->host, "test/wrong", a->wrong);
    rlhf_metric_last(a->host, "test/parts", a->parts);
    rlhf_metric_last(a->host, "test/excluded", a->out);
    rlhf_metric_last(a->host, "test/calls", a->calls);
    a->wrong = a->parts = a->out = a->calls = a->score = a->tokens = a->rows = 0;
    a->loss = a->steps = 0;
    memset(a->left, 0, sizeof a->left);
    return RLHF_OK;
}

static const rlhf_algo_ops ops = {.size = sizeof ops,
                                  .plan = plan,
                                  .advantages = advantages,
                                  .loss = loss,
                                  .minibatch_end = minibatch_end,
                                  .phase_end = phase_end};

TEST_PLUGIN(RLHF_KIND_ALGO, "carrying_algo", .summary = "checks what reaches loss() with a row",
            TEST_OPTIONS(opts), TEST_INSTANCES)
