// test_grpo_iterative.c: checks when, in which order and with which arguments grpo_iterative.so
// asks the host to move the reference, to collect pairs and to train the reward model. Also tests
// the saved state, and that the inner loop gives the same bits as grpo.so. A fake host records the
// calls.
#include "algos/fixture.h"

#include <math.h>
#include <rlhf/draft/iteration.h>

struct fake {
    rlhf_iteration_service table;
    char log[64]; // C collect, U update, S sync
    uint32_t pairs, n;
    rlhf_reward_update how;
    rlhf_status collect_status, update_status, sync_status;
    int32_t reserved;
};

static struct batch b;
static struct fake fake;

static void note(struct fake *f, char what) {
    if (f->n + 1 < sizeof f->log) f->log[f->n++] = what;
    f->log[f->n] = 0;
}

// Returns the fake host's state. The functions of the service call this function with their host.
// The test fails if that host does not offer the service.
static struct fake *fake_of(const rlhf_host *host) {
    assert_ptr_equal(host->service(host, RLHF_SVC_ITERATION), &fake.table);
    return &fake;
}

static rlhf_status fake_sync(const rlhf_host *host) {
    struct fake *f = fake_of(host);
    note(f, 'S');
    return f->sync_status;
}

static rlhf_status fake_collect(const rlhf_host *host, uint32_t *added) {
    struct fake *f = fake_of(host);
    note(f, 'C');
    *added = f->pairs;
    return f->collect_status;
}

static rlhf_status fake_update(const rlhf_host *host, const rlhf_reward_update *how,
                               rlhf_reward_update_report *out) {
    struct fake *f = fake_of(host);
    note(f, 'U');
    f->how = *how;
    *out = (rlhf_reward_update_report){.size = out->size,
                                       .steps = 3,
                                       .fresh = 18,
                                       .replayed = 2,
                                       .history = 40,
                                       .loss = 0.5,
                                       .accuracy = 0.75,
                                       .margin = 1.25,
                                       .fresh_before = 0.6,
                                       .fresh_after = 0.8};
    return f->update_status;
}

static void open_with_fake(struct algo *a, const char *options) {
    memset(&fake, 0, sizeof fake);
    fake.table = (rlhf_iteration_service){.size = sizeof fake.table,
                                          .reference_sync = fake_sync,
                                          .collect_pairs = fake_collect,
                                          .reward_update = fake_update};
    fake.pairs = 4;
    algo_offer = (struct rlhf_test_service){RLHF_SVC_ITERATION, &fake.table};
    algo_open(a, "grpo_iterative.so", options, b.n);
}

static rlhf_status phase(struct algo *a, int64_t number) {
    int32_t stop;
    assert_int_equal(batch_advantages(a, &b), RLHF_OK);
    batch_loss(a, &b, 0, b.n, 0);
    assert_int_equal(algo_minibatch_end(a, &algo_step, &stop), RLHF_OK);
    return algo_phase_end(a, number);
}

static void run(struct algo *a, int phases) {
    for (int i = 0; i < phases; i++)
        assert_int_equal(phase(a, i), RLHF_OK);
}

// Returns the algorithm's description of how it uses the service in phase_end().
static const rlhf_iteration *use_of(const struct algo *a) {
    assert_null(a->plugin->extension(NULL, RLHF_EXT_ITERATION)); // it needs the options
    assert_null(a->plugin->extension(a->self, "rlhf.other/1"));
    const rlhf_iteration *use = a->plugin->extension(a->self, RLHF_EXT_ITERATION);
    assert_non_null(use);
    return use;
}

// Without a reward model to train, the reference moves after every phase, and the algorithm makes
// no other calls.
static void two_model_variant(void **state) {
    (void)state;
    struct algo a;
    batch_random(&b, 8, 400);
    open_with_fake(&a, "group_size=2");
    assert_int_equal(use_of(&a)->reward_model, 0);
    assert_int_equal(use_of(&a)->moves_reference, 1);
    run(&a, 3);
    assert_string_equal(fake.log, "SSS");
    assert_true(metric(&a, "iteration/completed") == 3);
    double x;
    assert_false(rlhf_test_metric(a.host, "iteration/pairs", &x));
    algo_close(&a);
}

// Algorithm 1: pairs are collected after each phase. After the last phase of an iteration, the
// reward model is trained and then the reference moves.
static void outer_loop_with_replay(void **state) {
    (void)state;
    struct algo a;
    batch_random(&b, 8, 401);
    open_with_fake(&a, "group_size=2,iteration_phases=3,replay=true,replay_share=0.25,rm_epochs=2,"
                       "rm_batch=16,rm_lr=0.001,rm_refit=false,replay_history=7");
    assert_int_equal(use_of(&a)->reward_model, 1);
    assert_int_equal(a.plan.flags & RLHF_PLAN_REFERENCE, RLHF_PLAN_REFERENCE);
    run(&a, 2);
    assert_string_equal(fake.log, "CC");
    double x;
    assert_false(rlhf_test_metric(a.host, "reward_model/loss", &x));
    run(&a, 5);
    assert_string_equal(fake.log, "CCCUSCCCUSC");
    assert_int_equal(fake.how.size, sizeof fake.how);
    assert_int_equal(fake.how.epochs, 2);
    assert_int_equal(fake.how.batch_pairs, 16);
    assert_int_equal(fake.how.refit, 0);
    assert_true(fake.how.lr == 0.001 && fake.how.replay_share == 0.25);
    assert_int_equal(fake.how.history_max, 7);
    static const struct {
        const char *name;
        double value;
    } want[] = {{"reward_model/loss", 0.5},        {"reward_model/accuracy", 0.75},
                {"reward_model/margin", 1.25},     {"reward_model/fresh_before", 0.6},
                {"reward_model/fresh_after", 0.8}, {"reward_model/steps", 3},
                {"reward_model/fresh", 18},        {"reward_model/replayed", 2},
                {"reward_model/history", 40},      {"iteration/pairs", 4},
                {"iteration/completed", 2}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        assert_near(metric(&a, want[i].name), want[i].value, 1e-15, want[i].name);
    algo_close(&a);
}

// If the judge saw no difference in the whole iteration, the reward model is not trained.
static void no_pairs_no_training(void **state) {
    (void)state;
    struct algo a;
    batch_random(&b, 8, 402);
    open_with_fake(&a, "group_size=2,iteration_phases=2,replay=true");
    fake.pairs = 0;
    run(&a, 2);
    assert_string_equal(fake.log, "CCS");
    assert_true(rlhf_test_logged(a.host, "no preference pairs"));
    fake.pairs = 1; // one pair in the second phase is enough
    run(&a, 2);
    assert_string_equal(fake.log, "CCSCCUS");
    fake.pairs = 0; // pairs that were trained on are no longer fresh
    run(&a, 2);
    assert_string_equal(fake.log, "CCSCCUSCCS");
    algo_close(&a);
}

static void without_a_reference(void **state) {
    (void)state;
    struct algo a;
    batch_random(&b, 8, 403);
    open_with_fake(&a, "group_size=2,kl_placement=none,kl_measure=false,replay=true");
    run(&a, 2);
    assert_string_equal(fake.log, "CUCU");
    algo_close(&a);
}

static void what_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *options, *word;
    } cases[] = {{"kl_placement=none,kl_measure=false", "nothing to iterate"},
                 {"group_size=1", "group_size is 1"},
                 {"kl_estimator=full,kl_placement=reward", "kl_placement"},
                 {"dual_clip=1.1", "dual_clip"}};
    struct algo a;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        algo_offer = (struct rlhf_test_service){RLHF_SVC_ITERATION, &fake.table};
        assert_int_equal(algo_try(&a, "grpo_iterative.so", cases[i].options), RLHF_E_INVALID);
        assert_non_null(strstr(a.host->fail_text, cases[i].word));
        assert_int_equal(a.host->live, 0);
    }
    open_with_fake(&a, "");
    static const char *const out_of_range[][2] = {
        {"replay_share", "1.01"}, {"replay_share", "-0.1"}, {"rm_lr", "0"},
        {"rm_epochs", "0"},       {"rm_batch", "0"},        {"iteration_phases", "0"}};
    for (size_t i = 0; i < sizeof out_of_range / sizeof *out_of_range; i++)
        assert_false(
            rlhf_test_set(a.plugin, a.config.bytes, out_of_range[i][0], out_of_range[i][1]));
    algo_close(&a);
}

static void failures_are_passed_on(void **state) {
    (void)state;
    struct algo a;
    batch_random(&b, 8, 404);
    open_with_fake(&a, "group_size=2,replay=true");
    fake.collect_status = RLHF_E_CANCELLED;
    assert_int_equal(phase(&a, 0), RLHF_E_CANCELLED);
    fake.collect_status = RLHF_OK;
    fake.update_status = RLHF_E_NOMEM;
    assert_int_equal(phase(&a, 1), RLHF_E_NOMEM);
    fake.update_status = RLHF_OK;
    fake.sync_status = RLHF_E_DEVICE;
    assert_int_equal(phase(&a, 2), RLHF_E_DEVICE);
    algo_close(&a);
}

// If the host does not offer the service, create() fails, so nothing runs.
static void without_the_service(void **state) {
    (void)state;
    struct algo a;
    algo_offer = (struct rlhf_test_service){0};
    assert_int_equal(algo_try(&a, "grpo_iterative.so", ""), RLHF_E_UNSUPPORTED);
    assert_non_null(strstr(a.host->fail_text, RLHF_SVC_ITERATION));
    assert_int_equal(a.host->live, 0);
}

// The inner loop has the same advantages, losses and metrics as grpo.so.
static void inner_loop_is_grpo(void **state) {
    (void)state;
    static const char options[] = "group_size=2,loss=dapo,clip_range_high=0.28,entropy_coef=0.01";
    struct algo a;
    float advantage[MAX_TOKENS], d_logp[MAX_TOKENS];
    batch_random(&b, 8, 405);
    algo_open(&a, "grpo.so", options, b.n);
    assert_int_equal(phase(&a, 0), RLHF_OK);
    memcpy(advantage, b.advantage, sizeof advantage);
    memcpy(d_logp, b.d_logp, sizeof d_logp);
    static struct rlhf_test_reading want[RLHF_TEST_METRICS];
    uint32_t n = a.host->n_metrics;
    const rlhf_plan plan = a.plan;
    memcpy(want, a.host->metric, sizeof want);
    algo_close(&a);
    open_with_fake(&a, options);
    assert_memory_equal(&a.plan, &plan, sizeof plan);
    assert_int_equal(phase(&a, 0), RLHF_OK);
    assert_memory_equal(b.advantage, advantage, sizeof advantage);
    assert_memory_equal(b.d_logp, d_logp, sizeof d_logp);
    for (uint32_t i = 0; i < n; i++)
        assert_true(metric(&a, want[i].name) == want[i].value);
    assert_int_equal(a.host->n_metrics, n + 1); // and iteration/completed
    algo_close(&a);
}

// An algorithm that is stopped in the middle of an iteration continues there, with the same
// coefficient, phase and number of fresh pairs.
static void state_round_trip(void **state) {
    (void)state;
    static const char options[] = "group_size=2,iteration_phases=3,replay=true,"
                                  "kl_controller=adaptive,kl_horizon=50";
    struct algo a, c;
    struct rlhf_test_stream s, again;
    batch_random(&b, 8, 406);
    open_with_fake(&a, options);
    run(&a, 4);
    rlhf_test_stream_init(&s);
    assert_int_equal(a.plugin->save(a.self, &s.out), RLHF_OK);
    assert_int_equal(s.len, 36);
    fake.pairs = 0; // the remaining fresh pair must come from the state
    run(&a, 2);
    double coef = metric(&a, "objective/kl_coef");
    assert_string_equal(fake.log, "CCCUSCCCUS");
    algo_close(&a);

    open_with_fake(&c, options);
    fake.pairs = 0;
    assert_int_equal(c.plugin->load(c.self, &s.in, c.plugin->state_version), RLHF_OK);
    rlhf_test_stream_init(&again);
    assert_int_equal(c.plugin->save(c.self, &again.out), RLHF_OK);
    assert_memory_equal(again.bytes, s.bytes, s.len);
    run(&c, 2);
    assert_string_equal(fake.log, "CCUS");
    assert_true(metric(&c, "objective/kl_coef") == coef && coef != 0.04);
    assert_true(metric(&c, "iteration/completed") == 2);
    for (uint64_t cut = 0; cut < s.len; cut++) {
        struct rlhf_test_stream part = s;
        part.at = 0;
        part.len = cut;
        assert_int_equal(c.plugin->load(c.self, &part.in, c.plugin->state_version), RLHF_E_IO);
    }
    assert_int_equal(c.plugin->load(c.self, &again.in, 2), RLHF_E_UNSUPPORTED);
    again.bytes[1] ^= 1;
    assert_int_equal(c.plugin->load(c.self, &again.in, 1), RLHF_E_INVALID);
    for (uint64_t room = 0; room < 36; room++) {
        rlhf_test_stream_init(&again);
        again.limit = room;
        assert_int_equal(c.plugin->save(c.self, &again.out), RLHF_E_IO);
    }
    algo_close(&c);
}

static void allocation_failure(void **state) {
    (void)state;
    struct algo a;
    void *self = NULL;
    batch_random(&b, 8, 407);
    open_with_fake(&a, "group_size=2");
    rlhf_test_fail_alloc(a.host, 1, 0);
    assert_int_equal(a.plugin->create(&a.host->table, a.config.bytes, &self), RLHF_E_NOMEM);
    algo_close(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_model_variant),    cmocka_unit_test(outer_loop_with_replay),
        cmocka_unit_test(no_pairs_no_training), cmocka_unit_test(without_a_reference),
        cmocka_unit_test(what_is_refused),      cmocka_unit_test(failures_are_passed_on),
        cmocka_unit_test(without_the_service),  cmocka_unit_test(inner_loop_is_grpo),
        cmocka_unit_test(state_round_trip),     cmocka_unit_test(allocation_failure)};
    return cmocka_run_group_tests_name("algos/grpo_iterative", tests, NULL, NULL);
}
