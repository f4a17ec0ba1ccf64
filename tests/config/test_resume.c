// test_resume.c: which settings may change on a resume, and which may not.
#include "config/config_json.h"
#include "config/fixture.h"

#include <unistd.h>

// Makes a run directory with the config of algo.so and one reward. f->req then resumes this run.
static void store_run(struct fixture *f) {
    struct rlhf__error err = {0};
    struct rlhf__buf b = RLHF__BUF_INIT;
    char spec[1200];
    snprintf(spec, sizeof spec, "%s:rate=0.5", f->algo);
    f->req.algo = spec;
    add_reward(f, f->sample);
    add_set(f, "run.phases=10");
    add_set(f, "optim.lr=0.001");
    add_set(f, "checkpoint.every=1");
    add_set(f, "checkpoint.best=reward/total");
    check_ok(resolve(f, &err), &err);
    check_ok(rlhf__config_print(&f->config, &b, &err), &err);
    check_ok(rlhf__make_dirs(scratch_path(f->scratch, "run"), &err), &err);
    scratch_text(f->scratch, "run/config.json", rlhf__buf_text(&b));
    rlhf__buf_finish(&b);
    memset(&f->req, 0, sizeof f->req);
    f->req.dirs = &f->dirs;
    f->req.reward = f->reward;
    f->req.set = f->set;
    f->req.resume = strdup(scratch_path(f->scratch, "run"));
    f->req.trust_run = 1; // the test modules are not installed
}

static int setup(void **state) {
    if (fixture_setup(state) != 0) return -1;
    store_run(*state);
    return 0;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    free((char *)(uintptr_t)f->req.resume);
    return fixture_teardown(state);
}

static void the_stored_values_hold(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    scratch_text(f->scratch, "configs/algo.json", "{\"optim\": {\"lr\": 0.9, \"eps\": 0.9}}");
    check_ok(resolve(f, &err), &err);
    assert_true(f->config.optim.lr == 0.001 && f->config.optim.eps == 1e-8);
    assert_int_equal(f->config.run.phases, 10);
    assert_string_equal(f->config.run.dir, f->req.resume);
    assert_true(option(&f->config.algo, "rate") == 0.5);
}

static void some_things_may_change(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    char dir[600];
    snprintf(dir, sizeof dir, "run.dir=%s/../run/", f->req.resume);
    add_set(f, "run.phases=20");
    add_set(f, "run.threads=2");
    add_set(f, "log.samples=1");
    add_set(f, "checkpoint.every=5");
    add_set(f, dir);
    add_set(f, "optim.lr=0.001"); // an equal value is not a change
    f->req.algo = "algo.so";
    add_reward(f, "sample.so:weight=1");
    check_ok(load(f, &err), &err);
    assert_true(f->config.run.phases == 20 && f->config.run.threads == 2);
    assert_true(f->config.log.samples == 1 && f->config.checkpoint.every == 5);
}

static void check_refused(struct fixture *f, const char *part) {
    struct rlhf__error err = {0};
    check_error(load(f, &err), RLHF_E_INVALID, &err, part);
    f->req.n_set = f->req.n_reward = 0;
    f->req.algo = f->req.preset = f->req.config_file = NULL;
}

static void the_rest_may_not(void **state) {
    struct fixture *f = *state;
    add_set(f, "optim.lr=0.002");
    check_refused(f, "--resume: optim.lr cannot change from 0.001 to 0.002 in a run that goes on");
    add_set(f, "run.seed=2");
    check_refused(f, "run.seed cannot change from 1 to 2");
    add_set(f, "policy.path=elsewhere");
    check_refused(f, "policy.path cannot change from \"\" to \"elsewhere\"");
    add_set(f, "run.dir=elsewhere");
    check_refused(f, "goes on in that directory, but run.dir is elsewhere");
    add_set(f, "algo.rate=0.25");
    check_refused(f, "algo.rate cannot change from 0.5 to 0.25");
    add_set(f, "reward.0.weight=2");
    check_refused(f, "reward.0.weight cannot change from 1.0 to 2.0");
    f->req.algo = "ppo.so";
    check_refused(f, "algo.plugin cannot change from");
    add_reward(f, "imdb.so");
    check_refused(f, "reward.0.plugin cannot change from");
    add_reward(f, f->algo);
    check_refused(f, "reward.0.plugin cannot change from");
    add_reward(f, "sample.so");
    add_reward(f, "other.so");
    check_refused(f, "reward cannot change from");
    f->req.preset = "p";
    check_refused(f, "--preset cannot be given with it");
    f->req.config_file = "c.json";
    check_refused(f, "--config cannot be given with it");
}

static void the_best_checkpoint_stays(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    add_set(f, "checkpoint.every=0");
    check_refused(f, "checkpoint.every is 0, so the best checkpoint by "
                     "checkpoint.best=reward/total, which this run keeps, would no longer be kept");
    add_set(f, "checkpoint.every=0");
    add_set(f, "checkpoint.best=");
    check_ok(load(f, &err), &err);
}

static void a_run_is_needed(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    assert_int_equal(unlink(scratch_path(f->scratch, "run/config.json")), 0);
    check_error(load(f, &err), RLHF_E_INVALID, &err,
                "is not a run directory (it has no config.json)");
    assert_int_equal(rmdir(f->req.resume), 0);
    check_error(load(f, &err), RLHF_E_INVALID, &err, "--resume: there is no directory");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(the_stored_values_hold),    T(some_things_may_change), T(the_rest_may_not),
        T(the_best_checkpoint_stays), T(a_run_is_needed),
    };
    return cmocka_run_group_tests_name("config_resume", tests, NULL, NULL);
}
