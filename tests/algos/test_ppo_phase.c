// test_ppo_phase.c: ppo.so apart from its numbers: the plan, refusals, phase counters, minibatch
// scope, early stopping, adaptive KL, saved state, and running out of memory.
#include "algos/fixture.h"

#include <math.h>

static struct batch b;

static rlhf_status plan_with(struct algo *a, const char *options, int32_t batch_size) {
    rlhf_run_info info = {.size = sizeof info, .phases = 1, .batch_size = (uint32_t)batch_size};
    rlhf_status st = algo_try(a, "ppo.so", options);
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
    refused("advantage=group", "group_size");
    refused("advantage=group_mean,group_size=1", "group_mean");
    refused("advantage=group,group_size=2,whiten_scope=minibatch", "whiten_scope");
    refused("kl_estimator=full", "kl_placement");
    refused("kl_estimator=full,kl_placement=none", "none");
    refused("kl_controller=adaptive,kl_placement=none", "adaptive");
    refused("kl_controller=adaptive,kl_coef=0", "kl_coef");
    refused("kl_controller=adaptive,kl_horizon=1", "kl_horizon");
    refused("dual_clip=1.1", "dual_clip");
    refused("minibatches=9", "minibatches");
}

static void plan_says_what_is_needed(void **state) {
    (void)state;
    static const struct {
        const char *options;
        uint32_t heads, flags;
    } cases[] = {
        {"", 1 | 2 | 8, 1 | 8},
        {"advantage=sequence", 1 | 2, 1 | 8},
        {"advantage=group,group_size=2,kl_placement=none,kl_measure=false", 1 | 2, 8},
        {"kl_placement=none", 1 | 2 | 8, 1 | 8},
        {"kl_placement=loss,kl_estimator=full", 1 | 2 | 4 | 8, 1 | 8},
        {"whiten_scope=minibatch", 1 | 2 | 8, 1 | 2 | 8},
        {"old_logp=recompute", 1 | 2 | 8, 1 | 4 | 8},
        {"logprob_support=sampled", 1 | 2 | 8, 1},
        {"logprob_temperature=unit", 1 | 2 | 8, 1 | 8 | 16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct algo a;
        assert_int_equal(plan_with(&a, cases[i].options, 8), RLHF_OK);
        assert_int_equal(a.plan.source, RLHF_SOURCE_ROLLOUT);
        assert_int_equal(a.plan.heads, cases[i].heads);
        assert_int_equal(a.plan.flags, cases[i].flags | RLHF_PLAN_STALE);
        assert_int_equal(a.plan.epochs, 4);
        assert_int_equal(a.plan.minibatches, 1);
        algo_close(&a);
    }
}

// Runs one phase: advantages, then `epochs` passes with the batch as one minibatch, then the end of
// the phase.
static void phase(struct algo *a, uint32_t epochs) {
    assert_int_equal(batch_advantages(a, &b), RLHF_OK);
    for (uint32_t e = 0; e < epochs; e++) {
        batch_loss(a, &b, 0, b.n, e);
        algo_step_end(a, e, 0);
    }
    assert_int_equal(algo_phase_end(a, 0), RLHF_OK);
}

// By hand: 4 sequences have a KL of 3 each and the target is 2, so the error is clipped to 0.2.
static void adaptive_controller(void **state) {
    (void)state;
    struct algo a;
    memset(&b, 0, sizeof b);
    b.n = 4;
    b.max_len = 3;
    for (int32_t i = 0; i < 4; i++) {
        b.prompt_len[i] = 1;
        b.offset[i + 1] = b.offset[i] + 4;
        for (int32_t t = 1; t < 4; t++) {
            b.old[b.offset[i] + t] = b.logp[b.offset[i] + t] = -1;
            b.ref[b.offset[i] + t] = -2;
        }
    }
    b.total = b.offset[4];
    algo_open(
        &a, "ppo.so",
        "kl_controller=adaptive,kl_coef=0.15,kl_target=2,kl_horizon=100,whiten_advantages=off", 4);
    phase(&a, 2);
    assert_near(metric(&a, "objective/kl"), 3, 1e-12, "kl");
    assert_near(metric(&a, "objective/kl_per_token"), 1, 1e-12, "kl per token");
    assert_near(metric(&a, "objective/kl_coef"), 0.15, 1e-12, "coefficient used");
    assert_near(metric(&a, "objective/non_score_reward"), -0.45, 1e-12, "non-score");
    phase(&a, 2);
    double second = 0.15 * (1 + 0.2 * 4 / 100);
    assert_near(metric(&a, "objective/kl_coef"), second, 1e-12, "second coefficient");
    algo_close(&a);
    // kl_unit=token: the measured KL is 1 and the target 2, so the error of -0.5 is clipped to -0.2
    algo_open(&a, "ppo.so",
              "kl_controller=adaptive,kl_coef=0.15,kl_target=2,kl_horizon=100,kl_unit=token", 4);
    phase(&a, 1);
    phase(&a, 1);
    assert_near(metric(&a, "objective/kl_coef"), 0.15 * (1 - 0.2 * 4 / 100), 1e-12, "per token");
    algo_close(&a);
    // close to the target, the step is proportional to the error, 3 / 2.9 - 1
    algo_open(&a, "ppo.so", "kl_controller=adaptive,kl_coef=0.15,kl_target=2.9,kl_horizon=100", 4);
    phase(&a, 1);
    phase(&a, 1);
    assert_near(metric(&a, "objective/kl_coef"), 0.15 * (1 + (3 / 2.9 - 1) * 4 / 100), 1e-12,
                "proportional");
    algo_close(&a);
}

// Each sample counts only once, in the first epoch. This also holds in minibatch scope, and if the
// loss measures the KL.
static void every_sample_counts_once(void **state) {
    (void)state;
    static const char *const options[] = {
        "kl_controller=adaptive,kl_target=1e-6,kl_horizon=100,whiten_scope=minibatch",
        "kl_controller=adaptive,kl_target=1e-6,kl_horizon=100,kl_placement=loss,kl_estimator=full"};
    for (int i = 0; i < 2; i++) {
        struct algo a;
        batch_random(&b, 8, 6);
        for (int32_t t = 0; t < b.total; t++)
            b.ref[t] = b.old[t] - 1;
        double kl = 0;
        int64_t tokens = 0;
        for (int32_t k = 0; k < b.n; k++)
            for (int32_t t = b.offset[k] + b.prompt_len[k]; t < b.offset[k + 1]; t++, tokens++)
                kl += i ? (double)b.kl[t] : 1;
        algo_open(&a, "ppo.so", options[i], b.n);
        for (int round = 0; round < 2; round++) {
            for (uint32_t e = 0; e < 3; e++) {
                if (i == 0 || e == 0) assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
                batch_loss(&a, &b, 0, b.n, e);
                algo_step_end(&a, e, 0);
            }
            assert_int_equal(algo_phase_end(&a, 0), RLHF_OK);
        }
        assert_near(metric(&a, "objective/kl_per_token"), kl / (double)tokens, 1e-6, "per token");
        assert_near(metric(&a, "objective/kl"), kl / 8, 1e-6, "per sequence");
        assert_near(metric(&a, "objective/kl_coef"), 0.05 * (1 + 0.2 * 8 / 100), 1e-12, "samples");
        algo_close(&a);
    }
}

static void state_round_trip(void **state) {
    (void)state;
    static const char options[] = "kl_controller=adaptive,kl_horizon=50";
    struct algo a, c;
    struct rlhf_test_stream s, again;
    batch_random(&b, 8, 3);
    algo_open(&a, "ppo.so", options, b.n);
    phase(&a, 1);
    rlhf_test_stream_init(&s);
    assert_int_equal(a.plugin->save(a.self, &s.out), RLHF_OK);
    phase(&a, 1);
    double want = metric(&a, "objective/kl_coef");
    algo_close(&a);

    algo_open(&c, "ppo.so", options, b.n);
    assert_int_equal(c.plugin->load(c.self, &s.in, c.plugin->state_version), RLHF_OK);
    rlhf_test_stream_init(&again);
    assert_int_equal(c.plugin->save(c.self, &again.out), RLHF_OK);
    assert_int_equal(again.len, s.len);
    assert_memory_equal(again.bytes, s.bytes, s.len);
    phase(&c, 1);
    assert_true(metric(&c, "objective/kl_coef") == want);
    assert_true(want != 0.05);
    algo_close(&c);

    // A fixed coefficient is taken from the configuration, not from the saved state.
    algo_open(&c, "ppo.so", "kl_coef=0.7", b.n);
    s.at = 0;
    assert_int_equal(c.plugin->load(c.self, &s.in, c.plugin->state_version), RLHF_OK);
    phase(&c, 1);
    assert_true(metric(&c, "objective/kl_coef") == 0.7);
    algo_close(&c);
}

static void damaged_state_is_refused(void **state) {
    (void)state;
    struct algo a;
    struct rlhf_test_stream s, good;
    algo_open(&a, "ppo.so", "kl_controller=adaptive", 8);
    uint32_t version = a.plugin->state_version;
    rlhf_test_stream_init(&s);
    assert_int_equal(a.plugin->load(a.self, &s.in, version), RLHF_E_IO); // empty
    rlhf_test_stream_init(&good);
    assert_int_equal(a.plugin->save(a.self, &good.out), RLHF_OK);
    assert_int_equal(a.plugin->load(a.self, &good.in, version + 1), RLHF_E_UNSUPPORTED);
    s = good; // a negative coefficient, then infinity
    s.bytes[11] |= 0x80;
    s.at = 0;
    assert_int_equal(a.plugin->load(a.self, &s.in, version), RLHF_E_INVALID);
    memset(s.bytes + 4, 0, 6);
    s.bytes[10] = 0xf0;
    s.bytes[11] = 0x7f;
    s.at = 0;
    assert_int_equal(a.plugin->load(a.self, &s.in, version), RLHF_E_INVALID);
    for (uint64_t cut = 1; cut < good.len; cut++) {
        s = good;
        s.len = cut;
        s.at = 0;
        assert_int_equal(a.plugin->load(a.self, &s.in, version), RLHF_E_IO);
    }
    rlhf_rng r = {5, rlhf_rng_stream("damage"), 0};
    for (int i = 0; i < 2000; i++) { // random bytes after a random part of a valid state
        s = good;
        s.at = 0;
        for (uint64_t k = rlhf_rng_below(&r, s.len); k < s.len; k++)
            s.bytes[k] = (uint8_t)rlhf_rng_below(&r, 256);
        if (a.plugin->load(a.self, &s.in, version) == RLHF_OK) {
            struct rlhf_test_stream back;
            rlhf_test_stream_init(&back);
            assert_int_equal(a.plugin->save(a.self, &back.out), RLHF_OK);
            assert_memory_equal(back.bytes, s.bytes,
                                s.len); // the loaded state equals the saved one
        }
    }
    rlhf_test_stream_init(&s);
    s.limit = 5; // imitates a full disk
    assert_int_equal(a.plugin->save(a.self, &s.out), RLHF_E_IO);
    algo_close(&a);
}

static void early_stop_of_the_epochs(void **state) {
    (void)state;
    struct algo a;
    int32_t stop;
    batch_random(&b, 8, 4);
    algo_open(&a, "ppo.so", "target_kl=0.001", b.n);
    assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
    float keep[MAX_TOKENS];
    memcpy(keep, b.logp, sizeof keep);
    memcpy(b.logp, b.old, sizeof keep); // ratio 1: no reason to stop
    batch_loss(&a, &b, 0, b.n, 0);
    assert_int_equal(algo_minibatch_end(&a, &algo_step, &stop), RLHF_OK);
    assert_int_equal(stop, 0);
    memcpy(b.logp, keep, sizeof keep);
    batch_loss(&a, &b, 0, b.n, 1);
    assert_int_equal(algo_minibatch_end(&a, &algo_step, &stop), RLHF_OK);
    assert_int_equal(stop, 1);
    algo_close(&a);
}

// objective/loss is the loss of the last epoch, and loss/total the mean of all epochs. Neither
// counts skipped steps.
static void losses_of_epochs(void **state) {
    (void)state;
    struct algo a;
    batch_random(&b, 8, 5);
    algo_open(&a, "ppo.so", "", b.n);
    assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
    double loss[3];
    for (uint32_t e = 0; e < 3; e++) {
        for (int32_t t = 0; t < b.total; t++)
            b.value[t] += e == 2 ? NAN : 0.1f;
        loss[e] = batch_loss(&a, &b, 0, b.n, e);
        algo_step_end(&a, e, e == 2);
    }
    assert_true(isnan(loss[2]));
    assert_int_equal(algo_phase_end(&a, 0), RLHF_OK);
    assert_near(metric(&a, "objective/loss"), loss[1], 1e-12, "objective/loss");
    assert_near(metric(&a, "loss/total"), (loss[0] + loss[1]) / 2, 1e-12, "loss/total");
    algo_close(&a);
}

// In minibatch scope, the metrics count each row once, although advantages() runs in every epoch.
// Scores are still normalized over the whole phase.
static void minibatch_scope(void **state) {
    (void)state;
    static struct batch half[2];
    struct algo a;
    float all[16];
    for (int i = 0; i < 2; i++)
        batch_random(half + i, 8, 40 + (uint64_t)i);
    for (int i = 0; i < 16; i++) {
        const struct batch *h = half + i / 8;
        double paid = (double)h->score[i % 8];
        for (int32_t t = h->offset[i % 8]; t < h->offset[i % 8 + 1]; t++)
            paid += (double)h->token_reward[t];
        all[i] = (float)paid;
    }
    algo_open(&a, "ppo.so",
              "whiten_scope=minibatch,minibatches=2,epochs=2,normalize_scores=true,advantage="
              "one_step,whiten_advantages=off,kl_placement=none",
              16);
    double mean = 0, m2 = 0, score = 0;
    for (int i = 0; i < 16; i++)
        mean += (double)all[i] / 16;
    for (int i = 0; i < 16; i++)
        m2 += ((double)all[i] - mean) * ((double)all[i] - mean);
    for (int call = 0; call < 4; call++) {
        struct batch *h = half + call % 2;
        rlhf_rollout in = {.size = sizeof in,
                           .n = 8,
                           .total = (uint32_t)h->total,
                           .max_new_tokens = 8,
                           .offset = h->offset,
                           .prompt_len = h->prompt_len,
                           .group = h->group,
                           .finished = h->finished,
                           .score = h->score,
                           .token_reward = h->token_reward,
                           .logp_old = h->old,
                           .logp_ref = h->ref,
                           .value_old = h->value_old,
                           .batch_score = all,
                           .batch_tokens = half[0].total + half[1].total,
                           .batch_n = 16};
        rlhf_advantages out = {
            .size = sizeof out, .advantage = h->advantage, .returns = h->returns, .use = h->use};
        assert_int_equal(a.ops->advantages(a.self, &in, &out), RLHF_OK);
        int32_t i = 0;
        while (h->offset[i + 1] == h->offset[i] + h->prompt_len[i])
            i++;
        int32_t last = h->offset[i + 1] - 1;
        score =
            ((double)h->token_reward[last] + (double)h->score[i] - mean) / (sqrt(m2 / 15) + 1e-5);
        assert_near((double)h->advantage[last], score - (double)h->value_old[last], 1e-6,
                    "normalized over the phase");
    }
    assert_int_equal(algo_phase_end(&a, 0), RLHF_OK);
    double kl = 0, entropy = 0;
    for (int i = 0; i < 2; i++)
        for (int32_t t = 0; t < half[i].total; t++) {
            kl += (double)half[i].old[t] - (double)half[i].ref[t];
            entropy -= (double)half[i].old[t];
        }
    assert_near(metric(&a, "objective/kl"), kl / 16, 1e-9, "each row once");
    assert_near(metric(&a, "objective/entropy"), entropy / 16, 1e-9, "each row once");
    assert_near(metric(&a, "objective/rlhf_reward"), mean, 1e-7, "mean score");
    algo_close(&a);
}

// With dapo, the mean loss over minibatches of different length is the token mean of the phase.
// This also holds if there are fewer minibatches than planned.
static void check_dapo(const char *options, int64_t said) {
    struct algo a;
    double loss = 0, want = 0;
    int64_t tokens = 0;
    int32_t stop;
    batch_random(&b, 12, 50);
    b.minibatches = said;
    algo_open(&a, "ppo.so", options, b.n);
    assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
    memcpy(b.logp, b.old, sizeof b.logp);
    for (int32_t i = 0; i < b.n; i++)
        for (int32_t t = b.offset[i] + b.prompt_len[i]; t < b.offset[i + 1]; t++, tokens++)
            want -= (double)b.advantage[t];
    for (int32_t i = 0; i < 12; i += 4) { // the fixture's totals are the batch's: dapo ignores them
        loss += batch_loss(&a, &b, i, i + 4, 0);
        assert_int_equal(algo_minibatch_end(&a, &algo_step, &stop), RLHF_OK);
    }
    assert_near(loss / 3, want / (double)tokens, 1e-9, options);
    b.minibatches = 0;
    algo_close(&a);
}

static void dapo_weights_tokens_of_the_phase(void **state) {
    (void)state;
    check_dapo("aggregation=dapo,minibatches=3,advantage=sequence,kl_placement=none", 0);
    check_dapo("aggregation=dapo,minibatches=7,advantage=sequence,kl_placement=none", 3);
}

static void allocation_failures(void **state) {
    (void)state;
    for (int32_t on = 0; on < 2; on++)
        for (int64_t n = 1; n <= 2; n++) {
            struct algo a;
            batch_random(&b, 8, 60);
            algo_open(&a, "ppo.so", "", b.n);
            if (n == 1) { // create() itself
                void *self = NULL;
                rlhf_test_fail_alloc(a.host, 1, on);
                assert_int_equal(a.plugin->create(&a.host->table, a.config.bytes, &self),
                                 RLHF_E_NOMEM);
            } else { // the working set of advantages(); the next call works again
                rlhf_test_fail_alloc(a.host, 1, on);
                assert_int_equal(batch_advantages(&a, &b), RLHF_E_NOMEM);
                rlhf_test_fail_alloc(a.host, 0, 0);
                assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
            }
            assert_string_equal(a.host->fail_text, "out of memory");
            algo_close(&a);
        }
}

// A host that breaks the contract gets an error message, not a crash.
static void missing_arrays(void **state) {
    (void)state;
    struct algo a;
    batch_random(&b, 8, 61);
    algo_open(&a, "ppo.so", "", b.n);
    a.plan.heads = 0; // the fixture then passes no value_old
    assert_int_equal(batch_advantages(&a, &b), RLHF_E_INTERNAL);
    assert_non_null(strstr(a.host->fail_text, "value_old"));
    a.plan.heads = RLHF_HEAD_VALUE;
    a.plan.flags = 0;
    assert_int_equal(batch_advantages(&a, &b), RLHF_E_INTERNAL);
    assert_non_null(strstr(a.host->fail_text, "logp_ref"));
    a.plan.flags = RLHF_PLAN_REFERENCE;
    b.offset[3] = b.offset[2] - 1;
    assert_int_equal(batch_advantages(&a, &b), RLHF_E_INTERNAL);
    assert_non_null(strstr(a.host->fail_text, "offset"));
    batch_random(&b, 8, 61);
    for (int32_t t = 0; t < b.total; t++)
        if (b.old[t] < 0) b.ref[t] = -INFINITY; // a token that the reference excludes
    assert_int_equal(batch_advantages(&a, &b), RLHF_E_NUMERIC);
    assert_non_null(strstr(a.host->fail_text, "is not finite (log-prob"));
    algo_close(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(meaningless_options_are_refused),
                                       cmocka_unit_test(plan_says_what_is_needed),
                                       cmocka_unit_test(adaptive_controller),
                                       cmocka_unit_test(every_sample_counts_once),
                                       cmocka_unit_test(state_round_trip),
                                       cmocka_unit_test(damaged_state_is_refused),
                                       cmocka_unit_test(early_stop_of_the_epochs),
                                       cmocka_unit_test(losses_of_epochs),
                                       cmocka_unit_test(minibatch_scope),
                                       cmocka_unit_test(dapo_weights_tokens_of_the_phase),
                                       cmocka_unit_test(allocation_failures),
                                       cmocka_unit_test(missing_arrays)};
    return cmocka_run_group_tests_name("algos/ppo_phase", tests, NULL, NULL);
}
