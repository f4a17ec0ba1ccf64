// batch.c: random batches for advantages(), loss() and score(). See rlhf/test.h.
#include <rlhf/rng.h>
#include <rlhf/test.h>

#include <math.h>

// A random log-prob near logp.
static float near(rlhf_rng *r, float logp) {
    return fminf(logp + (float)(0.6 * rlhf_rng_next(r) - 0.3), -0.001F);
}

static void fill_token(struct rlhf_test_batch *b, rlhf_rng *r, int32_t t, uint32_t named) {
    b->turn[t] = 0;
    b->token_reward[t] = (float)(0.1 * rlhf_rng_next(r));
    b->logp_old[t] = (float)(-3 * rlhf_rng_next(r) - 0.01);
    b->logp_sampled[t] = b->logp_old[t];
    b->logp_ref[t] = near(r, b->logp_old[t]);
    b->logp[t] = near(r, b->logp_old[t]);
    b->entropy[t] = (float)(3 * rlhf_rng_next(r));
    b->kl[t] = (float)rlhf_rng_next(r);
    b->value_old[t] = (float)(2 * rlhf_rng_next(r) - 1);
    b->value[t] = b->value_old[t] + (float)(0.6 * rlhf_rng_next(r) - 0.3);
    for (uint32_t k = 0; k < named; k++)
        b->named[k][t] = near(r, b->logp_old[t]);
}

static void fill_rows(struct rlhf_test_batch *b, uint32_t n, uint32_t group_size, uint32_t named,
                      rlhf_rng *r) {
    for (uint32_t i = 0; i < n; i++) {
        const int32_t begin = b->offset[i];
        b->prompt_len[i] = 1 + (int32_t)rlhf_rng_below(r, 3);
        b->offset[i + 1] = begin + b->prompt_len[i] + 1 + (int32_t)rlhf_rng_below(r, RLHF_TEST_LEN);
        b->group[i] = (int32_t)(i / group_size);
        b->row[i] = i;
        b->source[i] = i / group_size;
        b->label[i] = i % group_size == 0;
        b->finished[i] = 1;
        b->end[i] = RLHF_EPISODE_DONE;
        b->prompt[i] = b->response[i] = (rlhf_str){"", 0};
        b->messages[i] = (rlhf_str){"[]", 2};
        b->score[i] = (float)(2 * rlhf_rng_next(r) - 1);
        for (int32_t t = begin; t < b->offset[i + 1]; t++) {
            b->ids[t] = (int32_t)rlhf_rng_below(r, RLHF_TEST_VOCAB);
            b->turn[t] = -1;
            if (t >= begin + b->prompt_len[i]) fill_token(b, r, t, named);
        }
    }
}

static void fill_rollout(struct rlhf_test_batch *b, uint32_t n, int named) {
    static const double one = 1;
    static const char *const reward = "reward";
    b->rollout = (rlhf_rollout){.size = (uint32_t)sizeof b->rollout,
                                .n = n,
                                .total = (uint32_t)b->offset[n],
                                .max_new_tokens = RLHF_TEST_LEN,
                                .offset = b->offset,
                                .prompt_len = b->prompt_len,
                                .group = b->group,
                                .row = b->row,
                                .label = b->label,
                                .source = b->source,
                                .version = b->version,
                                .finished = b->finished,
                                .meta = b->meta,
                                .ids = b->ids,
                                .turn = b->turn,
                                .score = b->score,
                                .token_reward = b->token_reward,
                                .logp_old = b->logp_old,
                                .logp_sampled = b->logp_sampled,
                                .logp_ref = b->logp_ref,
                                .value_old = b->value_old,
                                .logp_named = named ? b->logp_named : NULL,
                                .reward_score = b->score,
                                .reward_weight = &one,
                                .reward_name = &reward,
                                .n_rewards = 1};
    b->advantages = (rlhf_advantages){.size = (uint32_t)sizeof b->advantages,
                                      .advantage = b->advantage,
                                      .returns = b->returns,
                                      .use = b->use,
                                      .carry_row = b->carry_row,
                                      .carry_token = b->carry_token};
}

static void fill_loss(struct rlhf_test_batch *b, uint32_t n, int named) {
    b->heads = (rlhf_head_values){.size = (uint32_t)sizeof b->heads,
                                  .logp = b->logp,
                                  .entropy = b->entropy,
                                  .kl = b->kl,
                                  .value = b->value};
    b->d_heads = (rlhf_head_gradients){.size = (uint32_t)sizeof b->d_heads,
                                       .logp = b->d_logp,
                                       .entropy = b->d_entropy,
                                       .kl = b->d_kl,
                                       .value = b->d_value};
    b->loss_in = (rlhf_loss_in){.size = (uint32_t)sizeof b->loss_in,
                                .n = n,
                                .total = (uint32_t)b->offset[n],
                                .minibatches = 1,
                                .max_new_tokens = RLHF_TEST_LEN,
                                .batch_sequences = n,
                                .offset = b->offset,
                                .prompt_len = b->prompt_len,
                                .group = b->group,
                                .row = b->row,
                                .label = b->label,
                                .source = b->source,
                                .version = b->version,
                                .ids = b->ids,
                                .turn = b->turn,
                                .heads = &b->heads,
                                .logp_old = b->logp_old,
                                .logp_sampled = b->logp_sampled,
                                .logp_ref = b->logp_ref,
                                .value_old = b->value_old,
                                .advantage = b->advantage,
                                .returns = b->returns,
                                .logp_named = named ? b->logp_named : NULL,
                                .carry_row = b->carry_row,
                                .carry_token = b->carry_token};
    for (uint32_t i = 0; i < n; i++)
        b->loss_in.batch_tokens += b->offset[i + 1] - b->offset[i] - b->prompt_len[i];
}

void rlhf_test_batch_init(struct rlhf_test_batch *b, uint32_t n, uint32_t group_size,
                          uint32_t named, uint64_t seed) {
    rlhf_rng r = {seed, rlhf_rng_stream("rlhf_test_batch"), 0};
    memset(b, 0, sizeof *b);
    if (n > RLHF_TEST_ROWS) n = RLHF_TEST_ROWS;
    if (named > RLHF_NAMED_MAX) named = RLHF_NAMED_MAX;
    for (uint32_t k = 0; k < named; k++)
        b->logp_named[k] = b->named[k];
    fill_rows(b, n, group_size ? group_size : 1, named, &r);
    fill_rollout(b, n, named > 0);
    fill_loss(b, n, named > 0);
    b->reward_in = (rlhf_reward_in){.size = (uint32_t)sizeof b->reward_in,
                                    .n = n,
                                    .prompt = b->prompt,
                                    .response = b->response,
                                    .meta = b->meta,
                                    .source = b->source,
                                    .group = b->group,
                                    .finished = b->finished,
                                    .prompt_len = b->prompt_len,
                                    .ids = b->ids,
                                    .offset = b->offset};
}

void rlhf_test_batch_turns(struct rlhf_test_batch *b) {
    for (uint32_t i = 0; i < b->rollout.n; i++) {
        const int32_t begin = b->offset[i] + b->prompt_len[i], end = b->offset[i + 1];
        for (int32_t t = begin; t < end; t++)
            b->turn[t] = end - begin > 1 && t >= begin + (end - begin) / 2;
    }
}

rlhf_status rlhf_test_advantages(const rlhf_algo_ops *ops, void *self, struct rlhf_test_batch *b) {
    memset(b->advantage, 0, sizeof b->advantage);
    memset(b->returns, 0, sizeof b->returns);
    memset(b->use, 0, sizeof b->use);
    memset(b->carry_row, 0, sizeof b->carry_row);
    memset(b->carry_token, 0, sizeof b->carry_token);
    return ops->advantages ? ops->advantages(self, &b->rollout, &b->advantages)
                           : RLHF_E_UNSUPPORTED;
}

double rlhf_test_loss(const rlhf_algo_ops *ops, void *self, struct rlhf_test_batch *b) {
    rlhf_loss_out out = {.size = (uint32_t)sizeof out, .d_heads = &b->d_heads};
    memset(b->d_logp, 0, sizeof b->d_logp);
    memset(b->d_entropy, 0, sizeof b->d_entropy);
    memset(b->d_kl, 0, sizeof b->d_kl);
    memset(b->d_value, 0, sizeof b->d_value);
    return ops->loss(self, &b->loss_in, &out) < 0 ? (double)NAN : out.loss;
}

rlhf_status rlhf_test_score(const rlhf_reward_ops *ops, void *self, struct rlhf_test_batch *b) {
    rlhf_reward_in in = b->reward_in;
    rlhf_reward_out out = {
        .size = (uint32_t)sizeof out, .seq = b->seq, .verdict = b->verdict, .failed = b->failed};
    if (ops->flags & RLHF_REWARD_PER_TOKEN) out.token = b->token;
    if (ops->flags & RLHF_REWARD_LOGP_SAMPLED) in.logp_sampled = b->logp_sampled;
    if (ops->flags & RLHF_REWARD_LOGP_REF) in.logp_ref = b->logp_ref;
    if (ops->flags & RLHF_REWARD_TURNS) {
        in.turn = b->turn;
        in.messages = b->messages;
        in.end = b->end;
    }
    memset(b->token, 0, sizeof b->token);
    memset(b->verdict, 0, sizeof b->verdict);
    memset(b->failed, 0, sizeof b->failed);
    for (uint32_t i = 0; i < in.n; i++)
        b->seq[i] = NAN; // NaN: a reward that is left out
    return ops->score(self, &in, &out);
}
