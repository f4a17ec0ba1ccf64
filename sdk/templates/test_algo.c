// test_algo.c: loads my_algo.so, gives it two rollouts and checks advantages, loss and derivative.
//
// Usage: test_algo path/to/my_algo.so
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <rlhf/algo.h>
#include <rlhf/test.h>

static const char *path;
static struct rlhf_test_host host;

// Two rows of one prompt and two response tokens; scores 1 and 0.
static const int32_t offset[] = {0, 3, 6}, prompt_len[] = {1, 1};
static const float score[] = {1, 0}, token_reward[6];
static const float logp_old[] = {0, -1, -2, 0, -1, -1};
static float advantage[6], returns[6];

static void step(const rlhf_algo_ops *ops, void *self, float *d_logp, double *loss) {
    float logp[] = {0, -1, -2, 0, -1, -1};
    const rlhf_rollout batch = {.size = sizeof batch,
                                .n = 2,
                                .total = 6,
                                .max_new_tokens = 2,
                                .offset = offset,
                                .prompt_len = prompt_len,
                                .score = score,
                                .token_reward = token_reward,
                                .logp_old = logp_old,
                                .advantage = advantage,
                                .returns = returns};
    assert_int_equal(ops->advantages(self, &batch), RLHF_OK);
    const rlhf_heads heads = {.size = sizeof heads, .logp = logp};
    rlhf_heads grad = {.size = sizeof grad, .logp = d_logp};
    const rlhf_loss_in in = {.size = sizeof in,
                             .n = 2,
                             .total = 6,
                             .batch_sequences = 2,
                             .batch_tokens = 4,
                             .max_new_tokens = 2,
                             .offset = offset,
                             .prompt_len = prompt_len,
                             .heads = &heads,
                             .logp_old = logp_old,
                             .advantage = advantage,
                             .returns = returns};
    rlhf_loss_out out = {.size = sizeof out, .d_heads = &grad};
    assert_int_equal(ops->loss(self, &in, &out), RLHF_OK);
    *loss = out.loss;
}

static void raises_what_scored_well(void **state) {
    (void)state;
    const rlhf_plugin *p = rlhf_test_open(path, 0);
    assert_non_null(p);
    _Alignas(16) unsigned char config[256];
    rlhf_test_init(&host, 1);
    rlhf_test_config(p, config);
    void *self;
    assert_int_equal(p->create(&host.table, config, &self), RLHF_OK);
    float d_logp[6] = {0};
    double loss, reported;
    step(p->ops, self, d_logp, &loss);
    const rlhf_algo_ops *ops = p->ops;
    assert_int_equal(ops->phase_end(self, 0), RLHF_OK);
    p->destroy(self);

    assert_float_equal(loss, -(0.5 * -3 - 0.5 * -2) / 4, 1e-6);
    assert_true(d_logp[1] < 0 && d_logp[2] < 0); // descent raises the log-prob of the good row
    assert_true(d_logp[4] > 0 && d_logp[5] > 0);
    assert_float_equal(d_logp[0], 0, 0); // prompt tokens are not trained
    assert_false(rlhf_test_metric(&host, "objective/loss", &reported)); // no minibatch_end yet
    assert_int_equal(host.live, 0);                                     // nothing leaks
}

static void survives_out_of_memory(void **state) {
    (void)state;
    const rlhf_plugin *p = rlhf_test_open(path, 0);
    assert_non_null(p);
    _Alignas(16) unsigned char config[256];
    rlhf_test_init(&host, 1);
    rlhf_test_config(p, config);
    rlhf_test_fail_alloc(&host, 1, 1);
    void *self = NULL;
    assert_int_equal(p->create(&host.table, config, &self), RLHF_E_NOMEM);
    assert_string_equal(host.fail_text, "out of memory");
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    path = argv[1];
    const struct CMUnitTest tests[] = {cmocka_unit_test(raises_what_scored_well),
                                       cmocka_unit_test(survives_out_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
