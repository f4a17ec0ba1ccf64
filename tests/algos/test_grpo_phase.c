// test_grpo_phase.c: grpo.so apart from its numbers: refusals, the plan, adaptive KL, early
// stopping, minibatch scope, saved state, running out of memory, and a host that breaks the
// contract.
#include "algos/fixture.h"

#include <math.h>

static struct batch b;

static rlhf_status plan_with(struct algo *a, const char *options, int32_t batch_size) {
    rlhf_run_info info = {.size = sizeof info, .phases = 1, .batch_size = (uint32_t)batch_size};
    rlhf_status st = algo_try(a, "grpo.so", options);
    a->plan = (rlhf_plan){.size = sizeof a->plan};
    return st < 0 ? st : a->ops->plan(a->self, &info, &a->plan);
}

static void refused(const char *options, const char *word) {
    struct algo a;
    assert_int_equal(plan_with(&a, options, 8), RLHF_E_INVALID);
    if (!strstr(a.host->fail_text, word)) fail_msg("\"%s\" lacks %s", a.host->fail_text, word);
    a.plugin->destroy(a.self);
    assert_int_equal(a.host->live, 0);
}

static void meaningless_options_are_refused(void **state) {
    (void)state;
    refused("group_size=1", "group_size is 1");
    refused("group_size=1,advantage_scale=none", "group_size");
    refused("kl_estimator=full,kl_placement=reward", "kl_placement");
    refused("kl_estimator=full,kl_placement=none", "none");
    refused("kl_controller=adaptive,kl_placement=none", "adaptive");
    refused("kl_controller=adaptive,kl_coef=0", "kl_coef");
    refused("kl_controller=adaptive,kl_horizon=1", "kl_horizon");
    refused("dual_clip=1.1", "dual_clip");
    refused("dual_clip=3,loss=cispo", "cispo");
    refused("dual_clip=3,loss=gmpo", "gmpo");
    refused("dual_clip=3,loss=sapo", "sapo");
    refused("loss=gmpo,ratio=sequence_mean", "ratio is sequence_mean");
    refused("mask_zero_advantage_groups=true,loss=dapo,advantage_scope=minibatch",
            "advantage_scope batch");
    refused("minibatches=9", "minibatches");
}

static void plan_says_what_is_needed(void **state) {
    (void)state;
    enum {
        LE = RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY,
        FULL = RLHF_PLAN_FULL_SUPPORT,
        REF = RLHF_PLAN_REFERENCE
    };
    static const struct {
        const char *options;
        uint32_t heads, flags;
        int32_t group, epochs, minibatches;
    } cases[] = {
        {"", LE, REF | FULL, 8, 1, 1},
        {"group_size=4,epochs=3,minibatches=2", LE, REF | FULL, 4, 3, 2},
        {"kl_placement=reward", LE, REF | FULL, 8, 1, 1},
        {"kl_placement=none", LE, REF | FULL, 8, 1, 1},
        {"kl_placement=none,kl_measure=false", LE, FULL, 8, 1, 1},
        {"kl_estimator=full", LE | RLHF_HEAD_KL, REF | FULL, 8, 1, 1},
        {"advantage_scope=minibatch", LE,
         REF | FULL | RLHF_PLAN_MINIBATCH_SCOPE | RLHF_PLAN_WHOLE_GROUPS, 8, 1, 1},
        {"old_logp=recompute", LE, REF | FULL | RLHF_PLAN_RECOMPUTE_LOGP, 8, 1, 1},
        {"logprob_support=sampled", LE, REF, 8, 1, 1},
        {"logprob_temperature=unit", LE, REF | FULL | RLHF_PLAN_UNIT_TEMPERATURE, 8, 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct algo a;
        assert_int_equal(plan_with(&a, cases[i].options, 8), RLHF_OK);
        assert_int_equal(a.plan.source, RLHF_SOURCE_ROLLOUT);
        assert_int_equal(a.plan.heads, cases[i].heads);
        assert_int_equal(a.plan.flags, cases[i].flags | RLHF_PLAN_STALE);
        assert_int_equal(a.plan.group_size, cases[i].group);
        assert_int_equal(a.plan.epochs, cases[i].epochs);
        assert_int_equal(a.plan.minibatches, cases[i].minibatches);
        algo_close(&a);
    }
}

static void phase(struct algo *a, uint32_t epochs) {
    assert_int_equal(batch_advantages(a, &b), RLHF_OK);
    for (uint32_t e = 0; e < epochs; e++) {
        batch_loss(a, &b, 0, b.n, e);
        algo_step_end(a, e, 0);
    }
    assert_int_equal(algo_phase_end(a, 0), RLHF_OK);
}

// The KL is exactly 1 per token and the target is far below, so the coefficient rises by 0.2 * n /
// horizon.
static void adaptive_controller(void **state) {
    (void)state;
    static const char *const placed[] = {"loss", "reward"};
    for (int k = 0; k < 2; k++) {
        struct algo a;
        char options[160];
        snprintf(options, sizeof options,
                 "group_size=2,kl_controller=adaptive,kl_coef=0.3,kl_target=0.01,kl_horizon=100,"
                 "kl_unit=token,kl_placement=%s",
                 placed[k]);
        batch_random(&b, 8, 70);
        for (int32_t t = 0; t < b.total; t++)
            if (b.old[t] != 0) b.ref[t] = b.old[t] - 1;
        algo_open(&a, "grpo.so", options, b.n);
        phase(&a, 2);
        assert_near(metric(&a, "objective/kl_per_token"), 1, 1e-6, "kl");
        assert_near(metric(&a, "objective/kl_coef"), 0.3, 1e-12, "used");
        phase(&a, 2);
        assert_near(metric(&a, "objective/kl_coef"), 0.3 * (1 + 0.2 * 8 / 100), 1e-12, "raised");
        algo_close(&a);
    }
}

// A minibatch whose rows are all masked has a loss of 0, which counts in the mean over minibatches.
static void masked_minibatches_count_in_the_loss(void **state) {
    (void)state;
    double mean[2];
    for (int k = 0; k < 2; k++) {
        struct algo a;
        batch_random(&b, 8, 71);
        algo_open(&a, "grpo.so", "group_size=2,minibatches=2", b.n);
        assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
        if (k) algo_step_end(&a, 0, 0); // the host does not call loss() for masked rows
        batch_loss(&a, &b, 0, b.n, 0);
        algo_step_end(&a, 0, 0);
        assert_int_equal(algo_phase_end(&a, 0), RLHF_OK);
        mean[k] = metric(&a, "loss/total");
        assert_near(metric(&a, "objective/loss"), mean[k], 1e-12, "the last epoch's");
        algo_close(&a);
    }
    assert_true(mean[0] != 0);
    assert_near(mean[1], mean[0] / 2, 1e-12, "with a masked minibatch");
}

// The loss sees the exact KL in every epoch. The phase's metric is the KL of the first epoch.
static void exact_kl_counts_once(void **state) {
    (void)state;
    struct algo a;
    double kl = 0;
    batch_random(&b, 8, 75);
    for (int32_t t = 0; t < b.total; t++)
        kl += (double)b.kl[t] / 8;
    algo_open(&a, "grpo.so", "group_size=2,kl_estimator=full", b.n);
    phase(&a, 3);
    assert_near(metric(&a, "objective/kl"), kl, 1e-9, "per sequence");
    assert_near(metric(&a, "objective/non_score_reward"), -0.04 * kl, 1e-9, "penalty");
    algo_close(&a);
}

static void early_stop_of_the_epochs(void **state) {
    (void)state;
    struct algo a;
    int32_t stop;
    batch_random(&b, 8, 71);
    algo_open(&a, "grpo.so", "group_size=2,target_kl=0.001", b.n);
    assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
    float keep[MAX_TOKENS];
    memcpy(keep, b.logp, sizeof keep);
    memcpy(b.logp, b.old, sizeof keep);
    batch_loss(&a, &b, 0, b.n, 0);
    assert_int_equal(algo_minibatch_end(&a, &algo_step, &stop), RLHF_OK);
    assert_int_equal(stop, 0);
    memcpy(b.logp, keep, sizeof keep);
    batch_loss(&a, &b, 0, b.n, 1);
    assert_int_equal(algo_minibatch_end(&a, &algo_step, &stop), RLHF_OK);
    assert_int_equal(stop, 1);
    algo_close(&a);
}

// If advantages are computed per minibatch, advantage_scale=batch divides by the standard deviation
// of the minibatch. Every row counts once in the metrics, although each epoch calls advantages()
// again.
static void minibatch_scope(void **state) {
    (void)state;
    struct algo a;
    double want = 0, all[16], m2_all = 0;
    algo_open(&a, "grpo.so",
              "group_size=2,advantage_scope=minibatch,minibatches=2,epochs=2,advantage_scale=batch,"
              "advantage_eps=0,kl_placement=none",
              16);
    for (int call = 0; call < 4; call++) {
        batch_random(&b, 8, 80 + (uint64_t)(call % 2));
        memset(b.token_reward, 0, sizeof b.token_reward);
        b.score[1] = b.score[0]; // one group without spread in each minibatch
        for (int i = 0; i < 8; i++) {
            b.group[i] += 4 * (call % 2);
            all[8 * (call % 2) + i] = (double)b.score[i];
        }
        assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
        double mean = 0, m2 = 0;
        for (int i = 0; i < 8; i++)
            mean += (double)b.score[i] / 8;
        for (int i = 0; i < 8; i++)
            m2 += ((double)b.score[i] - mean) * ((double)b.score[i] - mean);
        for (int i = 0; i < 8; i++) {
            double gap = ((double)b.score[i] - (double)b.score[i ^ 1]) / 2;
            for (int32_t t = b.offset[i] + b.prompt_len[i]; t < b.offset[i + 1]; t++)
                assert_near((double)b.advantage[t], gap / sqrt(m2 / 7), 1e-6, "advantage");
        }
        if (call < 2) want += mean / 2;
    }
    assert_int_equal(algo_phase_end(&a, 0), RLHF_OK);
    assert_near(metric(&a, "objective/rlhf_reward"), want, 1e-7, "each row once");
    assert_near(metric(&a, "frac_reward_zero_std"), 2.0 / 8, 1e-15, "each group once");
    for (int i = 0; i < 16; i++)
        m2_all += (all[i] - want) * (all[i] - want);
    assert_near(metric(&a, "reward_std"), sqrt(m2_all / 15), 1e-7, "of all rows");
    algo_close(&a);
}

// With dapo and cispo, the mean over minibatches of different lengths equals the token mean of the
// phase. This also holds if there are fewer minibatches than planned.
static void dapo_weights_tokens_of_the_phase(void **state) {
    (void)state;
    static const char *const losses[] = {"dapo", "cispo", "dapo", "cispo"};
    for (int k = 0; k < 4; k++) {
        struct algo a;
        char options[128];
        double loss = 0, want = 0;
        int64_t tokens = 0;
        int32_t stop;
        snprintf(options, sizeof options, "group_size=2,minibatches=%d,kl_placement=none,loss=%s",
                 k < 2 ? 3 : 5, losses[k]);
        batch_random(&b, 12, 90);
        b.minibatches = k < 2 ? 0 : 3;
        algo_open(&a, "grpo.so", options, b.n);
        assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
        memcpy(b.logp, b.old, sizeof b.logp);
        for (int32_t i = 0; i < b.n; i++)
            for (int32_t t = b.offset[i] + b.prompt_len[i]; t < b.offset[i + 1]; t++, tokens++)
                want -= (double)b.advantage[t] * (k % 2 ? (double)b.logp[t] : 1);
        for (int32_t i = 0; i < 12; i += 4) {
            loss += batch_loss(&a, &b, i, i + 4, 0);
            assert_int_equal(algo_minibatch_end(&a, &algo_step, &stop), RLHF_OK);
        }
        assert_near(loss / 3, want / (double)tokens, 1e-9, losses[k]);
        b.minibatches = 0;
        algo_close(&a);
    }
}

static void state_round_trip(void **state) {
    (void)state;
    static const char options[] = "group_size=2,kl_controller=adaptive,kl_horizon=50";
    struct algo a, c;
    struct rlhf_test_stream s, again;
    batch_random(&b, 8, 72);
    algo_open(&a, "grpo.so", options, b.n);
    phase(&a, 1);
    rlhf_test_stream_init(&s);
    assert_int_equal(a.plugin->save(a.self, &s.out), RLHF_OK);
    phase(&a, 1);
    double want = metric(&a, "objective/kl_coef");
    algo_close(&a);
    algo_open(&c, "grpo.so", options, b.n);
    uint32_t version = c.plugin->state_version;
    assert_int_equal(c.plugin->load(c.self, &s.in, version), RLHF_OK);
    rlhf_test_stream_init(&again);
    assert_int_equal(c.plugin->save(c.self, &again.out), RLHF_OK);
    assert_int_equal(again.len, s.len);
    assert_memory_equal(again.bytes, s.bytes, s.len);
    phase(&c, 1);
    assert_true(metric(&c, "objective/kl_coef") == want && want != 0.04);
    assert_int_equal(c.plugin->load(c.self, &s.in, version + 1), RLHF_E_UNSUPPORTED);
    assert_int_equal(c.plugin->load(c.self, &s.in, version), RLHF_E_IO); // no bytes are left
    again.bytes[0] = 'X';
    assert_int_equal(c.plugin->load(c.self, &again.in, version), RLHF_E_INVALID);
    rlhf_test_stream_init(&again);
    again.limit = 5;
    assert_int_equal(c.plugin->save(c.self, &again.out), RLHF_E_IO);
    algo_close(&c);
    // grpo.so refuses a state that ppo.so saved.
    struct rlhf_test_stream other;
    rlhf_test_stream_init(&other);
    algo_open(&a, "ppo.so", "", b.n);
    assert_int_equal(a.plugin->save(a.self, &other.out), RLHF_OK);
    algo_close(&a);
    algo_open(&c, "grpo.so", "", b.n);
    assert_int_equal(c.plugin->load(c.self, &other.in, version), RLHF_E_INVALID);
    algo_close(&c);
}

static void allocation_failures(void **state) {
    (void)state;
    for (int32_t on = 0; on < 2; on++) {
        struct algo a;
        void *self = NULL;
        batch_random(&b, 8, 73);
        algo_open(&a, "grpo.so", "group_size=2", b.n);
        rlhf_test_fail_alloc(a.host, 1, on);
        assert_int_equal(a.plugin->create(&a.host->table, a.config.bytes, &self), RLHF_E_NOMEM);
        rlhf_test_fail_alloc(a.host, 1, on);
        assert_int_equal(batch_advantages(&a, &b), RLHF_E_NOMEM);
        rlhf_test_fail_alloc(a.host, 0, 0);
        assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
        assert_string_equal(a.host->fail_text, "out of memory");
        algo_close(&a);
    }
}

// A host that breaks the contract gets an error message, not a crash.
static void missing_arrays(void **state) {
    (void)state;
    struct algo a;
    batch_random(&b, 8, 74);
    algo_open(&a, "grpo.so", "group_size=2,kl_placement=reward", b.n);
    a.plan.flags = 0; // the fixture then passes no logp_ref
    assert_int_equal(batch_advantages(&a, &b), RLHF_E_INTERNAL);
    assert_non_null(strstr(a.host->fail_text, "logp_ref"));
    a.plan.flags = RLHF_PLAN_REFERENCE;
    b.prompt_len[3] = -1;
    assert_int_equal(batch_advantages(&a, &b), RLHF_E_INTERNAL);
    assert_non_null(strstr(a.host->fail_text, "prompt_len"));
    batch_random(&b, 8, 74);
    for (int32_t t = 0; t < b.total; t++)
        if (b.old[t] < 0) b.ref[t] = -INFINITY;
    assert_int_equal(batch_advantages(&a, &b), RLHF_E_NUMERIC);
    assert_non_null(strstr(a.host->fail_text, "is not finite (log-prob"));
    algo_close(&a);
    rlhf_loss_in in = {.size = sizeof in};
    rlhf_loss_out out = {.size = sizeof out};
    algo_open(&a, "grpo.so", "group_size=2", 8);
    assert_int_equal(a.ops->loss(a.self, &in, &out), RLHF_E_INTERNAL);
    assert_non_null(strstr(a.host->fail_text, "head"));
    algo_close(&a);
}

// Three groups of two rows in two minibatches; one group has no spread. The rows of that group do
// not count in the divisor of the loss, which is the number of remaining rows per minibatch (grpo),
// or the number of remaining tokens (dapo).
static void flat_groups_leave_the_divisors(void **state) {
    (void)state;
    static const char *const losses[] = {"grpo", "dapo"};
    for (int k = 0; k < 2; k++) {
        char options[160];
        double tokens = 0;
        struct algo a;
        batch_random(&b, 6, 11);
        memset(b.token_reward, 0, sizeof b.token_reward);
        for (int i = 0; i < 6; i++) {
            b.finished[i] = 1;
            b.score[i] = i / 2 == 1 ? 0.5f : (float)(i % 2);
            if (i / 2 != 1) tokens += b.offset[i + 1] - b.offset[i] - b.prompt_len[i];
        }
        memcpy(b.logp, b.old, sizeof b.logp); // ratio 1: a token's derivative is -A w
        b.minibatches = 2;
        snprintf(options, sizeof options,
                 "group_size=2,minibatches=2,kl_placement=none,mask_zero_advantage_groups=true,"
                 "advantage_scale=none,loss=%s",
                 losses[k]);
        algo_open(&a, "grpo.so", options, 6);
        assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
        batch_loss(&a, &b, 0, 6, 0);
        for (int i = 0; i < 6; i++) {
            const int32_t first = b.offset[i] + b.prompt_len[i], len = b.offset[i + 1] - first;
            assert_int_equal(b.use[i], i / 2 == 1 ? RLHF_USE_EXCLUDED : RLHF_USE_TRAINS);
            const double w = i / 2 == 1 ? 0 : k ? 2 / tokens : 2.0 / (4.0 * (double)len);
            for (int32_t t = first; t < b.offset[i + 1]; t++)
                assert_near((double)b.d_logp[t], (i % 2 ? -0.5 : 0.5) * w, 1e-6, losses[k]);
        }
        algo_close(&a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(meaningless_options_are_refused),
                                       cmocka_unit_test(flat_groups_leave_the_divisors),
                                       cmocka_unit_test(plan_says_what_is_needed),
                                       cmocka_unit_test(adaptive_controller),
                                       cmocka_unit_test(exact_kl_counts_once),
                                       cmocka_unit_test(early_stop_of_the_epochs),
                                       cmocka_unit_test(masked_minibatches_count_in_the_loss),
                                       cmocka_unit_test(minibatch_scope),
                                       cmocka_unit_test(dapo_weights_tokens_of_the_phase),
                                       cmocka_unit_test(state_round_trip),
                                       cmocka_unit_test(allocation_failures),
                                       cmocka_unit_test(missing_arrays)};
    return cmocka_run_group_tests_name("algos/grpo_phase", tests, NULL, NULL);
}
