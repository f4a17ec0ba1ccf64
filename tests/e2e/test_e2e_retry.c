// test_e2e_retry.c: runs with injected faults of the environment. No run is lost, the log names
// each fault, and a run with faults ends with the same bytes as a run without faults.
// RLHF_LONG_FAULTS=N injects N faults into each kind of environment: a program, a Python class, and
// a service in each of its two forms.
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

// The system's interpreter starts faster than a wrapper that comes first on PATH.
static const char *python(void) {
    return access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3";
}

// How the game is played: by a program, a class, or a service with one of its two forms.
enum form { PROGRAM, CLASS, LINES, OPENENV };

// A service that runs; closing its standard input ends it.
static FILE *service;

static int start_service(const struct e2e *t, int rate, int most, const char *count,
                         const char *kinds) {
    char command[2048], name[512], line[32] = "";
    snprintf(name, sizeof name, "%s/port", t->dir);
    snprintf(command, sizeof command, "exec %s " PLAY_SOURCE_DIR "/served.py %s %d %d %d %s > %s",
             python(), kinds, rate, rate, most, count, name);
    unlink(name);
    service = popen(command, "w");
    assert_non_null(service);
    for (int k = 0; k < 1200 && !strchr(line, '\n'); k++) {
        usleep(50000);
        FILE *f = fopen(name, "r");
        if (f && !fgets(line, sizeof line, f)) line[0] = 0;
        if (f) fclose(f);
    }
    assert_true(atoi(line) > 0);
    return atoi(line);
}

static void end_game(void) {
    if (service) pclose(service);
    service = NULL;
}

// Returns the options of a game that goes wrong `most` times. End it with end_game().
static const char *game(const struct e2e *t, enum form form, int rate, int most, const char *count,
                        const char *kinds) {
    static char text[2048];
    char faulty[1024];
    snprintf(faulty, sizeof faulty, "%d %d %s %s", rate, most, count, kinds);
    setenv("FAULTY", faulty, 1);
    if (form == PROGRAM)
        snprintf(text, sizeof text,
                 "--env env_exec.so --set 'environment.command=%s " SOURCE " %s' ", python(),
                 faulty);
    else if (form == CLASS)
        snprintf(text, sizeof text,
                 "--env env_python.so:file=" SOURCE ",class=Game,api=gymnasium,python=%s ",
                 python());
    else
        snprintf(text, sizeof text, "--env env_http.so:url=http://127.0.0.1:%d/%s ",
                 start_service(t, rate, most, count, kinds),
                 form == LINES ? "play" : ",form=openenv,observation=/text,execution_error=replay");
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

// Returns the number of faults in the file, which has the numbers of calls and faults.
static int faults_in(const char *count) {
    int calls = 0, faults = 0;
    FILE *f = fopen(count, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%d %d", &calls, &faults), 2);
    fclose(f);
    return faults;
}

// Runs with up to `most` faults of these kinds, until there were `all` faults in total.
static void with_faults(struct e2e *t, enum form form, const char *kinds, int most, int all,
                        const char *more) {
    char count[512], dir[32];
    const int good = run(t, "good", game(t, form, 1, 0, "none", "exit"), "");
    end_game();
    if (good != 0) fail_msg("%s", t->out);
    assert_int_equal(failures(t, "good"), 0);
    int done = 0;
    for (int k = 0; done < all; k++) {
        snprintf(count, sizeof count, "%s/count%d", t->dir, k);
        snprintf(dir, sizeof dir, "bad%d", k);
        // another rate gives other calls the faults
        const int st = run(t, dir, game(t, form, 5 + k % 7, most, count, kinds), more);
        end_game();
        if (st != 0) {
            fputs(t->out, stderr); // fail_msg() would cut it
            fail_msg("%s ended with status %d", dir, st);
        }
        e2e_says(t, "played again (1 of 1000)");
        const int faults = faults_in(count);
        if (faults < (most < 10 ? most : 1)) fail_msg("only %d faults", faults);
        done += faults;
        assert_true(failures(t, dir) >= faults / 2); // some faults hit a second answer
        same_bytes(t, dir);
        assert_int_equal(e2e_shell(t, "rm -rf %s", dir), 0);
    }
    print_message("%s: %d faults\n", kinds, done);
    assert_int_equal(e2e_shell(t, "rm -rf good"), 0);
}

// Returns the number of faults for each form. at_once() returns the number of faults in one run.
static int wanted(int usual) {
    const char *text = getenv("RLHF_LONG_FAULTS");
    return text ? atoi(text) : usual;
}

static int at_once(int usual) { return getenv("RLHF_LONG_FAULTS") ? 50 : usual; }

static void programs(void **state) {
    with_faults(*state, PROGRAM, "crash exit nonsense huge twice other unknown failed", at_once(8),
                wanted(8), "");
}

static void classes(void **state) {
    with_faults(*state, CLASS, "crash exit failed", at_once(6), wanted(6), "");
}

#if RETRY_HTTP
// A service's connections, and the states of its episodes, survive most of its faults.
static void services(void **state) {
    with_faults(*state, LINES, "half+status+nonsense+huge+drop", at_once(5), wanted(5), "");
    with_faults(*state, OPENENV, "half+drop+nonsense+huge+error", at_once(5), wanted(5), "");
}
#endif

// Injects faults that are found only when the time limit of 2 s is over. RLHF_LONG_SILENCES=N
// injects N of them into each kind of environment.
static void silences(struct e2e *t, enum form form, const char *kinds) {
    const char *text = getenv("RLHF_LONG_SILENCES");
    const int all = text ? atoi(text) : wanted(0) / 25;
    if (all) with_faults(t, form, kinds, text ? 50 : 10, all, "--set rewards.timeout_s=2");
}

static void silent_programs(void **state) { silences(*state, PROGRAM, "hang close late"); }

static void silent_classes(void **state) { silences(*state, CLASS, "hang late"); }

#if RETRY_HTTP
static void silent_lines(void **state) { silences(*state, LINES, "late"); }

static void silent_openenv(void **state) { silences(*state, OPENENV, "late"); }
#endif

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
            run(t, dir, game(t, PROGRAM, 5, 1, count, all[i].kind), "--set episodes.retries=0");
        assert_int_equal(status, 1);
        e2e_says(t, all[i].says);
    }
}

// With on_failure=drop, an episode that fails for good leaves the batch, and the others train.
static void dropped(void **state) {
    struct e2e *t = *state;
    char count[512];
    snprintf(count, sizeof count, "%s/drop", t->dir);
    if (run(t, "drop.run", game(t, PROGRAM, 9, 4, count, "failed"),
            "--set episodes.retries=0 --set episodes.on_failure=drop") != 0)
        fail_msg("%s", t->out);
    e2e_says(t, "left out of the batch (episodes.on_failure=drop)");
    json_t *m = e2e_metrics(t, "drop.run");
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        sum += e2e_metric(m, i, "episodes/dropped");
        assert_true(e2e_metric(m, i, "sampling/logp_difference/max") <= 0);
    }
    json_decref(m);
    assert_true(sum >= 4 && sum <= 4);
    assert_int_equal(e2e_shell(t, "test $(grep -c '\"segments\"' drop.run/rollouts.jsonl) = 32"),
                     0);
    assert_int_equal(run(t, "none.run", game(t, PROGRAM, 1, 9999, "none", "failed"),
                         "--set episodes.retries=0 --set episodes.on_failure=drop"),
                     1);
    e2e_says(t, "all 12 episodes failed, so no row is left");
}

// With an argument, runs only the tests whose names match it, for example "silent_*".
int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(programs, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(classes, e2e_setup, e2e_teardown),
#if RETRY_HTTP
        cmocka_unit_test_setup_teardown(services, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(silent_lines, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(silent_openenv, e2e_setup, e2e_teardown),
#endif
        cmocka_unit_test_setup_teardown(silent_programs, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(silent_classes, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(named, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(dropped, e2e_setup, e2e_teardown),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("retry", tests, NULL, NULL);
}
