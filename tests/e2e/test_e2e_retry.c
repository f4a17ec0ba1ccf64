// test_e2e_retry.c: runs with injected faults of the environment. No run is lost, the log names
// each fault, and a run with faults ends with the bytes of a run without them. RLHF_LONG_FAULTS=N
// injects N faults.
#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUN                                                                                        \
    "--algo grpo.so --set algo.group_size=4 --policy model --set policy.init=random "              \
    "--set batch.size=12 --set run.phases=3 --set sampling.max_new_tokens=40 "                     \
    "--set episodes.reply_tokens=20 --set optim.lr=0.01 --set log.rollouts=true "                  \
    "--set run.seed=5 --set episodes.tokens=62 --set episodes.retries=1000 "                       \
    "--set 'sampling.stop=[\"a\",\"e\",\"o\",\"i\",\"n\",\"t\",\"s\",\"r\",259]' "
#define SOURCE PLAY_SOURCE_DIR "/faulty.py"

// The system's interpreter starts faster than a wrapper that is first on PATH.
static const char *python(void) {
    return access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3";
}

// How the game is played: by a program or a class.
enum form { PROGRAM, CLASS };

static const char *game(enum form form, int rate, int most, const char *count, const char *kinds) {
    static char text[2048];
    if (form == PROGRAM)
        snprintf(text, sizeof text,
                 "--env env_exec.so --set 'environment.command=%s " SOURCE " %d %d %s %s' ",
                 python(), rate, most, count, kinds);
    else
        snprintf(text, sizeof text,
                 "--env env_python.so:file=" SOURCE ",class=Game,api=gymnasium,python=%s ",
                 python());
    char faulty[2048];
    snprintf(faulty, sizeof faulty, "%d %d %s %s", rate, most, count, kinds);
    setenv("FAULTY", faulty, 1);
    return text;
}

static int run(struct e2e *t, const char *dir, const char *env, const char *more) {
    return e2e_run(t, RUN "%s --set run.dir=%s %s", env, dir, more);
}

static int failures(struct e2e *t, const char *dir) {
    json_t *rows = e2e_metrics(t, dir);
    double sum = 0;
    for (int i = 0; i < 3; i++)
        sum += e2e_metric(rows, i, "episodes/failures");
    json_decref(rows);
    return (int)sum;
}

static void same_bytes(struct e2e *t, const char *dir) {
    static const char *const files[] = {"checkpoints/latest/model.safetensors", "rollouts.jsonl",
                                        "samples.jsonl"};
    for (size_t i = 0; i < 3; i++)
        if (e2e_shell(t, "cmp good/%s %s/%s", files[i], dir, files[i]) != 0)
            fail_msg("%s: %s", dir, t->out);
}

// Runs with `most` faults of these kinds, until there were `all` of them.
static void with_faults(struct e2e *t, enum form form, const char *kinds, int most, int all,
                        const char *more) {
    char count[512], dir[32];
    if (run(t, "good", game(form, 1, 0, "none", "exit"), "") != 0) fail_msg("%s", t->out);
    assert_int_equal(failures(t, "good"), 0);
    for (int k = 0; k * most < all; k++) {
        snprintf(count, sizeof count, "%s/count%d", t->dir, k);
        snprintf(dir, sizeof dir, "bad%d", k);
        // another rate puts the faults elsewhere
        if (run(t, dir, game(form, 5 + k % 7, most, count, kinds), more) != 0)
            fail_msg("%s", t->out);
        e2e_says(t, "played again (1 of 1000)");
        assert_true(failures(t, dir) >= most / 2); // some faults hit a second answer
        char faults[128];
        snprintf(faults, sizeof faults, "grep -q ' %d$' count%d", most, k);
        if (e2e_shell(t, "%s", faults) != 0) fail_msg("fewer than %d faults", most);
        same_bytes(t, dir);
        assert_int_equal(e2e_shell(t, "rm -rf %s", dir), 0);
    }
    assert_int_equal(e2e_shell(t, "rm -rf good"), 0);
}

static int wanted(int usual) {
    const char *text = getenv("RLHF_LONG_FAULTS");
    return text ? atoi(text) : usual;
}

static void programs(void **state) {
    with_faults(*state, PROGRAM, "crash exit nonsense huge twice other unknown failed", 8,
                wanted(8), "");
}

static void classes(void **state) {
    with_faults(*state, CLASS, "crash exit failed", 6, wanted(6), "");
}

// These are found when the time is over.
static void silence(void **state) {
    if (!getenv("RLHF_LONG_FAULTS")) return;
    with_faults(*state, PROGRAM, "hang close", 2, wanted(2) / 50, "--set rewards.timeout_s=5");
    with_faults(*state, CLASS, "hang", 2, wanted(2) / 50, "--set rewards.timeout_s=5");
}

// Each fault is named. Without retries it ends the run.
static void named(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *kind, *says;
    } all[] = {{"crash", "was ended by signal 11"},
               {"exit", "ended with status 3"},
               {"nonsense", "\"}{\": it is not a JSON object"},
               {"failed", "gave up episode"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char count[512], dir[32];
        snprintf(count, sizeof count, "%s/named%zu", t->dir, i);
        snprintf(dir, sizeof dir, "named%zu.run", i);
        const int status =
            run(t, dir, game(PROGRAM, 5, 1, count, all[i].kind), "--set episodes.retries=0");
        assert_int_equal(status, 1);
        e2e_says(t, all[i].says);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(programs, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(classes, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(silence, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(named, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("retry", tests, NULL, NULL);
}
