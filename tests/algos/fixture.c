// fixture.c: see fixture.h.
#include "algos/fixture.h"

#include <math.h>

static struct rlhf_test_host the_host;
struct rlhf_test_service algo_offer;

const rlhf_step_info algo_step = {.size = sizeof algo_step, .lr_factor = 1, .steps = 1};

rlhf_status algo_try(struct algo *a, const char *file, const char *options) {
    char path[4096], list[1024], *save = NULL;
    const char *build = getenv("RLHF_BUILD_DIR");
    snprintf(path, sizeof path, "%s/lib/rlhf/1/algos/%s", build ? build : ".", file);
    memset(a, 0, sizeof *a);
    a->host = &the_host;
    rlhf_test_init(a->host, 1);
    if (algo_offer.id) rlhf_test_offer(a->host, algo_offer.id, algo_offer.table);
    a->plugin = rlhf_test_open(path, 0);
    assert_non_null(a->plugin);
    assert_true(a->plugin->config_size <= sizeof a->config);
    a->ops = a->plugin->ops;
    rlhf_test_config(a->plugin, a->config.bytes);
    snprintf(list, sizeof list, "%s", options);
    for (char *item = strtok_r(list, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
        char *equals = strchr(item, '=');
        assert_non_null(equals);
        *equals = 0;
        if (!rlhf_test_set(a->plugin, a->config.bytes, item, equals + 1))
            fail_msg("%s refuses %s=%s", file, item, equals + 1);
    }
    return a->plugin->create(&a->host->table, a->config.bytes, &a->self);
}

void algo_open(struct algo *a, const char *file, const char *options, int32_t batch_size) {
    assert_int_equal(algo_try(a, file, options), RLHF_OK);
    rlhf_run_info info = {.size = sizeof info,
                          .phases = 10,
                          .batch_size = (uint32_t)batch_size,
                          .max_new_tokens = 8,
                          .n_labels = 3,
                          .temperature = 1};
    a->plan = (rlhf_plan){.size = sizeof a->plan};
    assert_int_equal(a->ops->plan(a->self, &info, &a->plan), RLHF_OK);
}

void algo_close(struct algo *a) {
    a->plugin->destroy(a->self);
    a->self = NULL;
    assert_int_equal(a->host->live, 0);
}

void algo_needs_memory(const char *file) {
    struct algo a;
    void *self = NULL;
    assert_int_equal(algo_try(&a, file, ""), RLHF_OK);
    rlhf_test_fail_alloc(a.host, 1, 0);
    assert_int_equal(a.plugin->create(&a.host->table, a.config.bytes, &self), RLHF_E_NOMEM);
    algo_close(&a);
}

rlhf_status batch_advantages(struct algo *a, struct batch *b) {
    memset(b->advantage, 0, sizeof b->advantage);
    memset(b->returns, 0, sizeof b->returns);
    memset(b->use, 0, sizeof b->use);
    memset(b->carry_row, 0, sizeof b->carry_row);
    memset(b->carry_token, 0, sizeof b->carry_token);
    int64_t finished = 0;
    for (int32_t i = 0; i < b->n; i++)
        if (b->finished[i]) finished += b->offset[i + 1] - b->offset[i] - b->prompt_len[i];
    int reference = (a->plan.flags & RLHF_PLAN_REFERENCE) && !(a->plan.heads & RLHF_HEAD_KL);
    const float *named[] = {b->ref}; // the one named model that an algorithm may plan here
    rlhf_rollout in = {.size = sizeof in,
                       .logp_named = a->plan.n_named ? named : NULL,
                       .n = (uint32_t)b->n,
                       .total = (uint32_t)b->total,
                       .max_new_tokens = (uint32_t)b->max_len,
                       .offset = b->offset,
                       .prompt_len = b->prompt_len,
                       .group = b->group,
                       .finished = b->finished,
                       .score = b->score,
                       .token_reward = b->token_reward,
                       .logp_old = b->old,
                       .logp_sampled = b->sampled ? b->sampled : b->old,
                       .logp_ref = reference ? b->ref : NULL,
                       .value_old = a->plan.heads & RLHF_HEAD_VALUE ? b->value_old : NULL,
                       .batch_finished_tokens = finished,
                       .reward_score = b->reward_score,
                       .reward_weight = b->reward_weight,
                       .n_rewards = b->n_rewards,
                       .label = b->label};
    rlhf_advantages out = {
        .size = sizeof out, .advantage = b->advantage, .returns = b->returns, .use = b->use};
    if (a->plan.carry_rows) out.carry_row = b->carry_row;
    if (a->plan.carry_tokens) out.carry_token = b->carry_token;
    return a->ops->advantages(a->self, &in, &out);
}

static double rows_loss(struct algo *a, struct batch *b, int32_t from, int32_t to, uint32_t epoch) {
    int32_t base = b->offset[from], len = b->offset[to] - base, offset[MAX_ROWS + 1];
    int64_t tokens = 0;
    for (int32_t i = from; i <= to; i++)
        offset[i - from] = b->offset[i] - base;
    for (int32_t i = 0; i < b->n; i++)
        if (b->use[i] != RLHF_USE_EXCLUDED)
            tokens += b->offset[i + 1] - b->offset[i] - b->prompt_len[i];
    size_t row = (size_t)(from * b->n_labels);
    memset(b->d_class_score + row, 0, sizeof(float) * (size_t)((to - from) * b->n_labels));
    uint32_t heads = a->plan.heads;
    rlhf_head_values x = {.size = sizeof x,
                          .logp = heads & RLHF_HEAD_LOGP ? b->logp + base : NULL,
                          .entropy = heads & RLHF_HEAD_ENTROPY ? b->entropy + base : NULL,
                          .kl = heads & RLHF_HEAD_KL ? b->kl + base : NULL,
                          .value = heads & RLHF_HEAD_VALUE ? b->value + base : NULL,
                          .score = heads & RLHF_HEAD_SCORE ? b->class_score + row : NULL};
    rlhf_head_gradients d = {.size = sizeof d,
                             .logp = x.logp ? b->d_logp + base : NULL,
                             .entropy = x.entropy ? b->d_entropy + base : NULL,
                             .kl = x.kl ? b->d_kl + base : NULL,
                             .value = x.value ? b->d_value + base : NULL,
                             .score = x.score ? b->d_class_score + row : NULL};
    int reference = (a->plan.flags & RLHF_PLAN_REFERENCE) && !x.kl;
    const float *named[] = {b->ref + base};
    rlhf_loss_in in = {.size = sizeof in,
                       .logp_named = a->plan.n_named ? named : NULL,
                       .n = (uint32_t)(to - from),
                       .total = (uint32_t)len,
                       .epoch = epoch,
                       .batch_sequences = b->n,
                       .batch_tokens = tokens,
                       .max_new_tokens = (uint32_t)b->max_len,
                       .offset = offset,
                       .prompt_len = b->prompt_len + from,
                       .group = b->group + from,
                       .heads = &x,
                       .logp_old = b->old + base,
                       .logp_ref = reference ? b->ref + base : NULL,
                       .value_old = x.value ? b->value_old + base : NULL,
                       .advantage = b->advantage + base,
                       .returns = b->returns + base,
                       .label = b->label + from,
                       .n_labels = (uint32_t)b->n_labels,
                       .minibatches = (uint32_t)b->minibatches,
                       .margin = b->margin ? b->margin + from : NULL};
    const uint32_t rows = a->plan.carry_rows, per_token = a->plan.carry_tokens;
    if (rows) in.carry_row = b->carry_row + (uint32_t)from * rows;
    if (per_token) in.carry_token = b->carry_token + (uint32_t)base * per_token;
    rlhf_loss_out out = {.size = sizeof out, .d_heads = &d};
    assert_int_equal(a->ops->loss(a->self, &in, &out), RLHF_OK);
    a->loss += out.loss;
    return out.loss;
}

// Rows without gradient must be all zeros, as the host requires of loss().
static void no_gradient(const struct batch *b, int32_t i) {
    for (int32_t t = b->offset[i]; b->use[i] == RLHF_USE_NO_GRADIENT && t < b->offset[i + 1]; t++)
        if (b->d_logp[t] != 0 || b->d_entropy[t] != 0 || b->d_kl[t] != 0 || b->d_value[t] != 0)
            fail_msg("row %d has a derivative though its use is RLHF_USE_NO_GRADIENT", (int)i);
}

double batch_loss(struct algo *a, struct batch *b, int32_t from, int32_t to, uint32_t epoch) {
    float *grads[] = {b->d_logp, b->d_entropy, b->d_kl, b->d_value};
    const size_t base = (size_t)b->offset[from], len = (size_t)b->offset[to] - base;
    double loss = 0;
    for (int k = 0; k < 4; k++)
        memset(grads[k] + base, 0, sizeof(float) * len);
    for (int32_t i = from, end; i < to; i = end + 1) {
        for (end = i; end < to && b->use[end] != RLHF_USE_EXCLUDED;)
            end++;
        if (end > i) loss += rows_loss(a, b, i, end, epoch);
    }
    for (int32_t i = from; i < to; i++)
        no_gradient(b, i);
    return loss;
}

// With a smaller step, the rounding of floats would hide the difference.
void batch_differences(struct algo *a, struct batch *b, float *x, const float *d, int32_t n,
                       double tol, double kink, const char *what) {
    float given[MAX_TOKENS];
    int32_t kinks = 0;
    const double at = batch_loss(a, b, 0, b->n, 0);
    memcpy(given, d, sizeof *given * (size_t)n);
    for (int32_t i = 0; i < n; i++) {
        const float was = x[i], up = was + 1e-3f, down = was - 1e-3f;
        x[i] = up;
        const double above = batch_loss(a, b, 0, b->n, 0);
        x[i] = down;
        const double below = batch_loss(a, b, 0, b->n, 0);
        x[i] = was;
        const double right = (above - at) / ((double)up - (double)was);
        const double left = (at - below) / ((double)was - (double)down);
        if (kink > 0 && fabs(right - left) > kink)
            kinks++;
        else
            assert_near((double)given[i], (above - below) / ((double)up - (double)down), tol, what);
    }
    assert_true(kinks <= n / 20);
}

int32_t algo_step_end(struct algo *a, uint32_t epoch, int32_t skipped) {
    int32_t stop = 0;
    rlhf_step_info step = algo_step;
    step.epoch = epoch;
    step.loss = a->loss;
    a->loss = 0;
    step.skipped = (uint32_t)skipped;
    assert_int_equal(algo_minibatch_end(a, &step, &stop), RLHF_OK);
    return stop;
}

rlhf_status algo_minibatch_end(struct algo *a, const rlhf_step_info *step, int32_t *stop) {
    rlhf_step_out out = {.size = sizeof out};
    const rlhf_status st = a->ops->minibatch_end(a->self, step, &out);
    *stop = out.stop;
    return st;
}

rlhf_status algo_phase_end(struct algo *a, int64_t phase) {
    const rlhf_phase_info info = {.size = sizeof info, .phase = phase, .steps = 1};
    return a->ops->phase_end(a->self, &info);
}

double metric(const struct algo *a, const char *name) {
    double value = 0;
    if (!rlhf_test_metric(a->host, name, &value)) fail_msg("%s was not reported", name);
    return value;
}

void batch_random(struct batch *b, int32_t n, uint64_t seed) {
    rlhf_rng r = {seed, rlhf_rng_stream("tests/algos"), 0};
    memset(b, 0, sizeof *b);
    b->n = n;
    b->max_len = 8;
    for (int32_t i = 0; i < n; i++) {
        int32_t prompt = 1 + (int32_t)rlhf_rng_below(&r, 3);
        int32_t len = (int32_t)rlhf_rng_below(&r, 9); // sometimes empty
        b->prompt_len[i] = prompt;
        b->group[i] = i / 2;
        b->label[i] = (int32_t)rlhf_rng_below(&r, 3);
        b->offset[i + 1] = b->offset[i] + prompt + len;
        b->score[i] = (float)(2 * rlhf_rng_next(&r) - 1);
        for (int32_t t = b->offset[i] + prompt; t < b->offset[i + 1]; t++) {
            b->token_reward[t] = (float)(0.1 * rlhf_rng_next(&r));
            b->old[t] = (float)(-3 * rlhf_rng_next(&r) - 0.01);
            b->ref[t] = b->old[t] + (float)(0.6 * rlhf_rng_next(&r) - 0.3);
            b->logp[t] = b->old[t] + (float)(0.6 * rlhf_rng_next(&r) - 0.3);
            b->value_old[t] = (float)(2 * rlhf_rng_next(&r) - 1);
            b->value[t] = b->value_old[t] + (float)(0.6 * rlhf_rng_next(&r) - 0.3);
            b->entropy[t] = (float)(3 * rlhf_rng_next(&r));
            b->kl[t] = (float)rlhf_rng_next(&r);
        }
    }
    b->total = b->offset[n];
    for (int32_t i = 0; i < 8 * n; i++)
        b->class_score[i] = (float)(4 * rlhf_rng_next(&r) - 2);
}

void assert_near(double got, double want, double tol, const char *what) {
    double scale = fabs(want) > 1 ? fabs(want) : 1;
    if (!(fabs(got - want) <= tol * scale)) fail_msg("%s: got %.9g, want %.9g", what, got, want);
}
