// test_algo.c: loads my_algo.so, passes two rollouts to it, and checks advantages, loss and
// derivative.
//
// Usage: test_algo path/to/my_algo.so
#include <rlhf/algo.h>
#include <rlhf/test.h>

static struct rlhf_test_host host;

// Two rows, each with one prompt token and two response tokens. Their scores are 1 and 0.
static const int32_t offset[] = {0, 3, 6}, prompt_len[] = {1, 1};
static const float score[] = {1, 0}, token_reward[6];
static const float logp_old[] = {0, -1, -2, 0, -1, -1};
static const float logp_ref[] = {0, -1.5F, -1.5F, 0, -0.5F, -1.25F}; // of the reference
static float logp[] = {0, -1, -2, 0, -1, -1};
static float advantage[6], returns[6];

// If plan() requests another head, add an array for the head here and one for its derivatives
// below.
static const rlhf_head_values heads = {.size = sizeof heads, .logp = logp};
static const rlhf_rollout rollout = {.size = sizeof rollout,
                                     .n = 2,
                                     .total = 6,
                                     .max_new_tokens = 2,
                                     .offset = offset,
                                     .prompt_len = prompt_len,
                                     .score = score,
                                     .token_reward = token_reward,
                                     .logp_old = logp_old,
                                     .logp_ref = logp_ref};
static rlhf_advantages results = {
    .size = sizeof results, .advantage = advantage, .returns = returns};
static const rlhf_loss_in batch = {.size = sizeof batch,
                                   .n = 2,
                                   .total = 6,
                                   .batch_sequences = 2,
                                   .batch_tokens = 4,
                                   .max_new_tokens = 2,
                                   .offset = offset,
                                   .prompt_len = prompt_len,
                                   .heads = &heads,
                                   .logp_old = logp_old,
                                   .logp_ref = logp_ref,
                                   .advantage = advantage,
                                   .returns = returns};

static void plans_what_can_be_run(const rlhf_algo_ops *ops, void *self) {
    const rlhf_run_info run = {
        .size = sizeof run, .batch_size = 2, .max_new_tokens = 2, .phases = 1, .temperature = 1};
    rlhf_plan plan = {.size = sizeof plan};
    RLHF_TEST_CHECK(&host, ops->plan(self, &run, &plan) == RLHF_OK);
    RLHF_TEST_CHECK(&host, plan.source == RLHF_SOURCE_ROLLOUT);
}

static void raises_what_scored_well(const rlhf_algo_ops *ops, void *self) {
    float d_logp[6] = {0};
    rlhf_head_gradients slopes = {.size = sizeof slopes, .logp = d_logp};
    rlhf_loss_out out = {.size = sizeof out, .d_heads = &slopes};
    RLHF_TEST_CHECK(&host, ops->advantages(self, &rollout, &results) == RLHF_OK);
    RLHF_TEST_CHECK(&host, ops->loss(self, &batch, &out) == RLHF_OK);
    RLHF_TEST_NEAR(&host, out.loss, -(0.5 * -3 - 0.5 * -2) / 4, 1e-6);
    RLHF_TEST_CHECK(&host, d_logp[1] < 0 && d_logp[2] < 0); // a step raises the good row
    RLHF_TEST_CHECK(&host, d_logp[4] > 0 && d_logp[5] > 0);
    RLHF_TEST_CHECK(&host, d_logp[0] == 0 && d_logp[3] == 0); // prompts are not trained
    // d_logp must be the derivative of out.loss.
    RLHF_TEST_NEAR(&host, rlhf_test_loss_derivative(ops, self, &batch, 1e-3), 0, 1e-3);
}

// The loss must not depend on the split into microbatches, so the losses of single rows must add up
// to the loss of both rows.
static void adds_up_over_microbatches(const rlhf_algo_ops *ops, void *self) {
    double whole = 0, parts = 0;
    for (uint32_t k = 0; k < 3; k++) { // both rows, then each
        const int32_t from = k < 2 ? 0 : 3;
        const int32_t own[] = {0, 3};
        float d_logp[6] = {0};
        const rlhf_head_values part = {.size = sizeof part, .logp = logp + from};
        rlhf_head_gradients slopes = {.size = sizeof slopes, .logp = d_logp};
        rlhf_loss_out out = {.size = sizeof out, .d_heads = &slopes};
        rlhf_loss_in in = batch;
        in.heads = &part;
        in.logp_old += from;
        in.logp_ref += from;
        in.advantage += from;
        in.returns += from;
        if (k > 0) {
            in.n = 1;
            in.total = 3;
            in.offset = own;
        }
        RLHF_TEST_CHECK(&host, ops->loss(self, &in, &out) == RLHF_OK);
        *(k ? &parts : &whole) += out.loss;
    }
    RLHF_TEST_NEAR(&host, parts, whole, 1e-9);
}

static const rlhf_plugin *plugin;
static _Alignas(16) unsigned char config[256];

static rlhf_status begin_and_end(struct rlhf_test_host *t, void *arg) {
    void *self = NULL;
    (void)arg;
    rlhf_status st = plugin->create(&t->table, config, &self);
    plugin->destroy(self);
    return st;
}

int main(int argc, char **argv) {
    plugin = argc == 2 ? rlhf_test_open(argv[1], 0) : NULL;
    if (!plugin) return 2;
    rlhf_test_init(&host, 1);
    if (!RLHF_TEST_CHECK(&host, plugin->config_size <= sizeof config)) return rlhf_test_end(&host);
    rlhf_test_config(plugin, config);
    void *self = NULL;
    if (RLHF_TEST_CHECK(&host, plugin->create(&host.table, config, &self) == RLHF_OK)) {
        const rlhf_algo_ops *ops = plugin->ops;
        plans_what_can_be_run(ops, self);
        raises_what_scored_well(ops, self);
        adds_up_over_microbatches(ops, self);
        const rlhf_phase_info phase = {.size = sizeof phase, .n = 2, .phases = 1, .steps = 1};
        if (ops->phase_end) RLHF_TEST_CHECK(&host, ops->phase_end(self, &phase) == RLHF_OK);
        plugin->destroy(self);
    }
    // Let each allocation of create() fail once.
    RLHF_TEST_CHECK(&host, rlhf_test_alloc_sweep(&host, begin_and_end, NULL) >= 0);
    return rlhf_test_end(&host); // 1 if a check failed or memory was not freed
}
