// test_layers.c: which source of a setting wins, and how names, paths and the options of plugins
// are read. Also checks that a config stays the same when it is printed and read back.
#include "config/config_json.h"
#include "config/fixture.h"

#include <unistd.h>

static void each_layer_is_over_the_one_before(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    // Six settings. Each layer sets one fewer than the layer below, so that every layer wins once.
    scratch_text(f->scratch, "configs/algo.json",
                 "{\"optim\": {\"lr\": 0.1, \"beta1\": 0.1, \"beta2\": 0.1, \"eps\": 0.1, "
                 "\"final_scale\": 0.1},"
                 " \"algo\": {\"rate\": 0.1, \"steps\": 1}}");
    scratch_text(f->scratch, "configs/presets/p.json",
                 "{\"optim\": {\"lr\": 0.2, \"beta1\": 0.2, \"beta2\": 0.2, \"eps\": 0.2}}");
    f->req.config_file = scratch_text(f->scratch, "my.json",
                                      "{\"optim\": {\"lr\": 0.3, \"beta1\": 0.3, \"beta2\": 0.3},"
                                      " \"algo\": {\"rate\": 0.3}}");
    check_ok(load(f, &err), &err);
    assert_true(f->config.optim.lr == 0.3 && f->config.optim.eps == 1e-8);
    f->req.preset = "p";
    f->req.algo = f->algo;
    add_set(f, "optim.lr=0.4");
    add_set(f, "optim.beta1=0.4");
    add_set(f, "optim.lr=0.5");
    check_ok(load(f, &err), &err);
    const struct rlhf__optim_config *o = &f->config.optim;
    assert_true(o->lr == 0.5);          // the later --set
    assert_true(o->beta1 == 0.4);       // --set over the file
    assert_true(o->beta2 == 0.3);       // file over preset
    assert_true(o->eps == 0.2);         // preset over the algorithm's file
    assert_true(o->final_scale == 0.1); // that file over the built-in value
    assert_true(o->max_grad_norm == 1); // built in
    assert_true(option(&f->config.algo, "rate") == 0.3 && option(&f->config.algo, "steps") == 1);
    assert_string_equal(f->config.run.preset, "p");
}

static void a_file_can_name_preset_and_algorithm(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    char text[2048];
    scratch_text(f->scratch, "configs/algo.json", "{\"batch\": {\"size\": 7}}");
    snprintf(
        text, sizeof text,
        "{\"algo\": {\"plugin\": \"%s\", \"rate\": 0.5}, \"batch\": {\"microbatch_tokens\": 9}}",
        f->algo);
    scratch_text(f->scratch, "configs/presets/p.json", text);
    f->req.config_file = scratch_text(f->scratch, "my.json", "{\"run\": {\"preset\": \"p\"}}");
    check_ok(resolve(f, &err), &err);
    assert_true(f->config.batch.size == 7 && f->config.batch.microbatch_tokens == 9);
    assert_string_equal(f->config.algo.plugin, f->algo);
}

static void options_of_another_algorithm_are_left_out(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    scratch_text(
        f->scratch, "configs/presets/p.json",
        "{\"algo\": {\"plugin\": \"ppo.so\", \"clip_range\": 0.3}, \"batch\": {\"size\": 5}}");
    f->req.preset = "p";
    f->req.algo = f->algo;
    add_set(f, "algo.rate=0.5");
    check_ok(resolve(f, &err), &err);
    assert_int_equal(f->config.batch.size, 5);
    assert_null(json_object_get(f->config.algo.options, "clip_range"));
}

static void specs_carry_options(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    char one[1200], two[1200], algo[1200];
    snprintf(algo, sizeof algo, "%s:rate=0.25,steps=9", f->algo);
    snprintf(one, sizeof one, "%s:weight=2,label=a,b,gain=3", f->sample); // a value with a comma
    snprintf(two, sizeof two, "%s:weight=-0.5,label=5,name=second", f->sample);
    f->req.algo = algo;
    add_reward(f, one);
    add_reward(f, two);
    add_set(f, "reward.1.count=42");
    check_ok(resolve(f, &err), &err);
    const struct rlhf__plugin_config *r = f->config.reward;
    assert_true(option(&f->config.algo, "rate") == 0.25 && option(&f->config.algo, "steps") == 9);
    assert_int_equal(f->config.n_reward, 2);
    assert_true(r[0].weight == 2 && r[1].weight == -0.5);
    assert_string_equal(json_string_value(json_object_get(r[0].options, "label")), "a,b");
    assert_string_equal(json_string_value(json_object_get(r[1].options, "label")), "5");
    assert_true(option(&r[0], "gain") == 3 && option(&r[1], "gain") == 1);
    assert_true(option(&r[0], "count") == 3 && option(&r[1], "count") == 42);
    assert_string_equal(r[0].name, "sample");
    assert_string_equal(r[1].name, "second");
}

static void rewards_of_flags_replace_those_of_files(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    char spec[1200];
    f->req.config_file = scratch_text(
        f->scratch, "my.json", "{\"reward\": [{\"plugin\": \"a.so\"}, {\"plugin\": \"b.so\"}]}");
    check_ok(load(f, &err), &err);
    assert_int_equal(f->config.n_reward, 2);
    add_reward(f, f->sample);
    add_reward(f, f->sample);
    snprintf(spec, sizeof spec, "%s:rate=0.5", f->algo);
    f->req.algo = spec;
    check_ok(resolve(f, &err), &err);
    assert_int_equal(f->config.n_reward, 2);
    assert_string_equal(f->config.reward[0].name, "sample");
    assert_string_equal(f->config.reward[1].name, "sample-2");
}

// The metrics rewards/environment/... are those of an environment that pays.
static void no_reward_is_named_environment(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    char spec[1200], own[1300];
    snprintf(spec, sizeof spec, "%s:rate=0.5", f->algo);
    snprintf(own, sizeof own, "%s:name=environment", f->sample);
    f->req.algo = spec;
    add_reward(f, f->sample);
    add_reward(f, own);
    check_error(resolve(f, &err), RLHF_E_INVALID, &err,
                "reward.1.name: \"environment\" is the name of the rewards of an environment; "
                "choose another name");
}

static void check_refused(struct fixture *f, const char *set, const char *part) {
    struct rlhf__error err = {0};
    f->req.n_set = 0;
    add_set(f, set);
    check_error(resolve(f, &err), RLHF_E_INVALID, &err, part);
}

static void wrong_settings(void **state) {
    struct fixture *f = *state;
    char spec[1200], hint[1300];
    snprintf(spec, sizeof spec, "%s:rate=0.5", f->algo);
    snprintf(hint, sizeof hint, "see rlhf-host plugin info %s", f->algo);
    f->req.algo = spec;
    add_reward(f, f->sample);
    check_refused(f, "optim.lr", "--set: \"optim.lr\" is not of the form section.key=value");
    check_refused(f, "lr=1", "is not of the form section.key=value");
    check_refused(f, "optim.=1", "is not of the form section.key=value");
    check_refused(f, "optm.lr=1", "unknown key \"optm.lr\" (did you mean \"optim.lr\"?)");
    check_refused(f, "optim.lrr=1", "unknown key \"optim.lrr\" (did you mean \"optim.lr\"?)");
    check_refused(f, "optim.lr=fast", "optim.lr must be a number from 0 to 10, found \"fast\"");
    check_refused(f, "optim.lr=", "found nothing");
    check_refused(f, "algo.stepz=1",
                  "--set: unknown key \"algo.stepz\" (did you mean \"algo.steps\"?)");
    check_refused(f, "algo.stepz=1", hint);
    check_refused(f, "algo.rate=0", "--set: algo.rate must be a number above 0");
    check_refused(f, "reward.1.gain=1", "there is 1 reward, numbered from 0");
    check_refused(f, "reward.x.gain=1", "write reward.<number>.<key>");
    check_refused(f, "reward.0.gian=1", "(did you mean \"reward.0.gain\"?)");
    check_refused(f, "reward.0.weight=x", "reward.0.weight must be a number, found \"x\"");
    check_refused(f, "reward.0.weight=1e99", "reward.0.weight must be a number from -1e9 to 1e9");
    check_refused(f, "run.seed=-1", "run.seed must be an integer of at least 0, found -1");
}

static void wrong_files(void **state) {
    struct fixture *f = *state;
    const struct {
        const char *text, *part;
    } bad[] = {
        {"[]", "my.json: the top level must be an object, found a list"},
        {"{\"optim\": 5}", "my.json:1: optim must be an object, found an integer"},
        {"{\n\"optm\": {}}", "my.json:2: unknown key \"optm\" (did you mean \"optim\"?)"},
        {"{\n\"optim\": {\n\"lrr\": 1}}", "my.json:3: unknown key \"optim.lrr\""},
        {"{\"algo\": \"ppo.so\"}",
         "my.json:1: algo must be an object with a \"plugin\", found a string"},
        {"{\"reward\": {}}", "my.json:1: reward must be a list of objects, found an object"},
        {"{\"reward\": [\n{}]}", "my.json:2: reward.0 must be an object with a \"plugin\""},
        {"{\"reward\": [{\"plugin\": \"a.so\", \"weight\": \"1\"}]}",
         "reward.0.weight must be a number"},
        {"{\"optim\": {\"lr\": 1, \"lr\": 2}}", "duplicate object key"},
        {"{\"run\": {\"preset\": \"none\"}}", "no preset \"none\""},
    };
    for (size_t i = 0; i < CHECK_COUNT(bad); i++) {
        struct rlhf__error err = {0};
        f->req.config_file = scratch_text(f->scratch, "my.json", bad[i].text);
        check_error(load(f, &err), RLHF_E_INVALID, &err, bad[i].part);
    }
    struct rlhf__error err = {0};
    f->req.config_file = scratch_path(f->scratch, "gone.json");
    check_error(load(f, &err), RLHF_E_INVALID, &err, "gone.json: cannot open");
}

static void an_option_in_a_file_is_named_with_its_line(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    char text[1300];
    snprintf(text, sizeof text, "{\"algo\": {\"plugin\": \"%s\",\n\"rate\": 0.5,\n\"steps\": -1}}",
             f->algo);
    f->req.config_file = scratch_text(f->scratch, "my.json", text);
    check_error(resolve(f, &err), RLHF_E_INVALID, &err,
                "my.json:3: algo.steps must be an integer from 0 to 1000, found -1");
}

static void an_algorithm_and_its_required_options(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    check_error(resolve(f, &err), RLHF_E_INVALID, &err,
                "no algorithm is given; name one, e.g. --algo ppo.so");
    f->req.algo = f->algo;
    check_error(resolve(f, &err), RLHF_E_INVALID, &err,
                "algo.rate is missing; it must be a number above 0");
}

static char *printed(struct fixture *f) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    struct rlhf__error err = {0};
    check_ok(rlhf__config_print(&f->config, &b, &err), &err);
    return b.data;
}

static void what_is_printed_reads_back(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    char spec[1200], back[1024];
    snprintf(spec, sizeof spec, "%s:rate=0.1", f->algo);
    f->req.algo = spec;
    add_reward(f, f->sample);
    add_reward(f, f->sample);
    add_set(f, "reward.1.weight=-0.3");
    add_set(f, "optim.lr=1e-05");
    add_set(f, "sampling.top_k=20");
    add_set(f, "reward.0.file=here"); // becomes absolute, since it exists
    add_set(f, "data.path=not-there");
    scratch_text(f->scratch, "here", "x");
    assert_non_null(getcwd(back, sizeof back));
    assert_int_equal(chdir(f->scratch->dir), 0);
    rlhf_status st = resolve(f, &err);
    assert_int_equal(chdir(back), 0);
    check_ok(st, &err);
    assert_string_equal(f->config.data.path, "not-there");
    assert_string_equal(json_string_value(json_object_get(f->config.reward[0].options, "file")),
                        scratch_path(f->scratch, "here"));
    char *first = printed(f);
    memset(&f->req, 0, sizeof f->req);
    f->req.dirs = &f->dirs;
    f->req.config_file = scratch_text(f->scratch, "again.json", first);
    check_ok(resolve(f, &err), &err);
    char *second = printed(f);
    assert_string_equal(first, second);
    free(first);
    free(second);
}

static void check_both(struct fixture *f, const char *a, const char *b, const char *part) {
    struct rlhf__error err = {0};
    f->req.n_set = 0;
    add_set(f, a);
    add_set(f, b);
    if (part)
        check_error(load(f, &err), RLHF_E_INVALID, &err, part);
    else
        check_ok(load(f, &err), &err);
}

static void settings_that_contradict(void **state) {
    struct fixture *f = *state;
    check_both(f, "response.period_min=25", "response.period_max=24",
               "response.period_min is 25 and response.period_max 24");
    check_both(f, "response.period_min=24", "response.period_max=24", NULL);
    check_both(f, "prompts.text=So", "prompts.path=x.txt",
               "prompts.text and prompts.path (x.txt) are both given");
    check_both(f, "prompts.text=So", "prompts.path=", NULL);
    check_both(f, "checkpoint.best=eval/loss", "data.eval_path=",
               "checkpoint.best is eval/loss, which is measured on data.eval_path");
    check_both(f, "checkpoint.best=eval/loss", "data.eval_path=x.jsonl", NULL);
}

static void nothing_is_given_twice(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    char twice[1200], once[1200];
    snprintf(twice, sizeof twice, "%s:weight=1,gain=2,weight=1", f->sample);
    snprintf(once, sizeof once, "%s:weight=1", f->sample);
    add_reward(f, twice);
    check_error(load(f, &err), RLHF_E_INVALID, &err, "reward.0.weight is given twice by --reward");
    f->reward[0] = once;
    add_set(f, "reward.0.weight=1");
    check_error(load(f, &err), RLHF_E_INVALID, &err,
                "reward.0.weight is given twice, by --reward and by --set");
    // A file is a separate layer.
    f->req.n_set = 0;
    f->req.config_file =
        scratch_text(f->scratch, "c.json", "{\"reward\": [{\"plugin\": \"a.so\", \"weight\": 5}]}");
    check_ok(load(f, &err), &err);
    assert_true(f->config.reward[0].weight == 1);
    f->req.n_reward = 0;
    add_set(f, "reward.0.weight=2");
    check_ok(load(f, &err), &err);
    assert_true(f->config.reward[0].weight == 2);
    add_set(f, "reward.0.weight=3");
    check_error(load(f, &err), RLHF_E_INVALID, &err, "reward.0.weight is given twice");
}

// Two flags for one setting are refused, because one of them would have no effect.
static void two_flags_do_not_give_one_setting(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    const char *flags[] = {"--phases", "--set", "--set"};
    char spec[1200];
    f->req.set_flag = flags;
    add_set(f, "run.phases=3");
    add_set(f, "run.phases=2");
    check_error(load(f, &err), RLHF_E_INVALID, &err,
                "--set: run.phases is given twice, by --phases and by --set");
    // If a flag is repeated, the last one counts. A file is a layer below the flags, so a flag
    // overrides a setting in a file without a conflict.
    flags[0] = "--set";
    f->req.config_file = scratch_text(f->scratch, "c.json", "{\"run\": {\"phases\": 9}}");
    check_ok(load(f, &err), &err);
    assert_int_equal(f->config.run.phases, 2);
    snprintf(spec, sizeof spec, "%s:rate=0.5", f->algo);
    f->req.algo = spec;
    add_set(f, "algo.rate=0.25"); // options after a plugin's name are below --set
    check_ok(resolve(f, &err), &err);
    assert_true(option(&f->config.algo, "rate") == 0.25);
}

#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(each_layer_is_over_the_one_before),
        T(a_file_can_name_preset_and_algorithm),
        T(options_of_another_algorithm_are_left_out),
        T(specs_carry_options),
        T(rewards_of_flags_replace_those_of_files),
        T(wrong_settings),
        T(no_reward_is_named_environment),
        T(wrong_files),
        T(an_option_in_a_file_is_named_with_its_line),
        T(an_algorithm_and_its_required_options),
        T(what_is_printed_reads_back),
        T(settings_that_contradict),
        T(nothing_is_given_twice),
        T(two_flags_do_not_give_one_setting),
    };
    return cmocka_run_group_tests_name("config_layers", tests, NULL, NULL);
}
