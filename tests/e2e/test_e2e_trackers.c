// test_e2e_trackers.c: wandb.so and trackio.so run against fake packages with the names of the real
// ones. The fakes record their calls.
#include "sink_kit.h"

// A fake package. It records its calls, and misbehaves in the phase that FAKE gives.
static const char package[] =
    "import json, os, sys, time\n"
    "def note(*what):\n"
    "    with open(os.environ['CALLS'], 'a') as f:\n"
    "        print(json.dumps(what), file=f)\n"
    "def fake(at):\n"
    "    how = os.environ.get('FAKE', '').split(':')\n"
    "    if how[0] != at: return\n"
    "    print('about to ' + how[1], file=sys.stderr, flush=True)\n"
    "    if how[1] == 'raise': raise ValueError('a bad\\nday')\n"
    "    if how[1] == 'crash': os.kill(os.getpid(), 11)\n"
    "    if how[1] == 'hang': time.sleep(1000)\n"
    "    if how[1] == 'exit': os._exit(3)\n"
    "    if how[1] == 'slow': time.sleep(2)\n"
    "class Run:\n"
    "    id, url, offline = 'id1', 'https://x.test/1', False\n"
    "class Table:\n"
    "    def __init__(self, columns, data):\n"
    "        self.told = [columns, data]\n"
    "def init(config=None, **words):\n"
    "    print('noise on standard output')\n"
    "    note('init', words, config.get('algo', {}).get('plugin'))\n"
    "    fake('init')\n"
    "    return Run()\n"
    "def log(values, step=None):\n"
    "    values = {k: v.told if isinstance(v, Table) else v for k, v in values.items()}\n"
    "    note('log', step, values)\n"
    "    fake(str(step))\n"
    "def finish(**words):\n"
    "    note('finish', words)\n"
    "    fake('finish')\n";

#define TRACKER "PYTHONPATH=fake CALLS=calls.jsonl "

static int setup(void **state) {
    if (e2e_setup(state) != 0) return -1;
    struct e2e *t = *state;
    e2e_write(t, "package.py", package);
    return e2e_shell(t, "mkdir fake && cp package.py fake/trackio.py && mv package.py "
                        "fake/wandb.py");
}

static int has_python(void) { return system("python3 -c 'import json' >/dev/null 2>&1") == 0; }

static const json_t *at(const json_t *calls, size_t i, size_t k) {
    return json_array_get(json_array_get(calls, i), k);
}

// The calls of the tracker's log() have the rows of metrics.jsonl.
static void a_tracker_gets_the_numbers(void **state) {
    struct e2e *t = *state;
    if (!has_python()) skip();
    assert_int_equal(e2e_shell(t, TRACKER "\"$HOST\" " PPO
                                          "--sink wandb.so:project=p,entity=e,mode=offline "
                                          "--set checkpoint.every=2 --set checkpoint.keep=0 "
                                          "--phases 3 --out r --threads 1"),
                     0);
    e2e_says(t, "wandb: https://x.test/1");
    json_t *calls = rows_of(t, "calls.jsonl"), *rows = e2e_metrics(t, "r");
    assert_int_equal(json_array_size(calls), 5);
    const json_t *words = at(calls, 0, 1);
    assert_string_equal(json_string_value(at(calls, 0, 2)), "ppo.so");
    assert_string_equal(text_of(words, "project"), "p");
    assert_string_equal(text_of(words, "name"), "r");
    assert_string_equal(text_of(words, "entity"), "e");
    assert_string_equal(text_of(words, "mode"), "offline");
    assert_null(json_object_get(words, "id"));
    for (size_t i = 0; i < 3; i++) {
        json_t *values = json_array_get(json_array_get(calls, i + 1), 2);
        assert_true(json_integer_value(at(calls, i + 1, 1)) == (json_int_t)i + 1);
        const json_t *table = json_object_get(values, "samples");
        assert_int_equal(json_array_size(json_array_get(table, 1)), 2);
        json_object_del(values, "samples");
        assert_metrics(values, json_array_get(rows, i), 1);
    }
    assert_true(json_integer_value(json_object_get(at(calls, 4, 1), "exit_code")) == 0);
    json_decref(calls);
    json_decref(rows);
    // After a resume from an earlier checkpoint, the tracker's run continues. Rows that the tracker
    // already has are not sent again.
    assert_int_equal(
        e2e_shell(
            t,
            "rm -r calls.jsonl r/checkpoints/000003; ln -sfn 000002 r/checkpoints/latest; " TRACKER
            "\"$HOST\" --resume r --trust-run --set "
            "run.phases=5 --threads 1"),
        0);
    calls = rows_of(t, "calls.jsonl");
    assert_int_equal(json_array_size(calls), 4);
    assert_string_equal(text_of(at(calls, 0, 1), "id"), "id1");
    assert_string_equal(text_of(at(calls, 0, 1), "resume"), "allow");
    assert_true(json_integer_value(at(calls, 1, 1)) == 4);
    json_decref(calls);
}

// `plugin check` finds nothing wrong with the trackers. They may write only to the run's directory.
static void the_trackers_are_sound(void **state) {
    struct e2e *t = *state;
    if (!has_python()) skip();
    static const char *const names[] = {"wandb", "trackio"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(e2e_shell(t,
                                   "PYTHONPATH=\"$PWD/fake\" CALLS=/dev/null \"$HOST\" plugin "
                                   "check %s.so",
                                   names[i]),
                         0);
        e2e_says(t, "nothing found");
        // begin() and phase() store in a file which data the tracker has. `plugin check` allows
        // this.
        assert_null(strstr(t->out, "the run would go on without it"));
    }
}

// After Ctrl-C, a tracker still gets the phase and the end of the run.
static void a_tracker_hears_of_ctrl_c(void **state) {
    struct e2e *t = *state;
    if (!has_python()) skip();
    assert_int_equal(
        e2e_shell(t, "FAKE=finish:slow " TRACKER "\"$HOST\" " PPO SINK_WITH(
                         "file=own.jsonl,at=2,interrupt=true") "--sink wandb.so "
                                                               "--phases 5 --out r --threads 1"),
        130);
    assert_null(strstr(t->out, "failed: sink"));
    json_t *calls = rows_of(t, "calls.jsonl");
    assert_int_equal(json_array_size(calls), 4);
    assert_true(json_integer_value(at(calls, 2, 1)) == 2);
    assert_string_equal(json_string_value(at(calls, 3, 0)), "finish");
    json_decref(calls);
}

static void a_tracker_that_fails_is_left_out(void **state) {
    struct e2e *t = *state;
    if (!has_python()) skip();
    static const struct {
        const char *fake, *says;
    } cases[] = {
        {"init:raise", "begin(): trackio (python3): ValueError: a bad day; the run goes on"},
        {"2:raise", "phase(), phase 2: trackio (python3): ValueError: a bad day"},
        {"2:crash", "phase(), phase 2: trackio (python3) "}, // the interpreter may be a script
        {"2:crash", "about to crash"},
        {"2:exit", "trackio (python3) ended with status 3"},
        {"2:hang", "phase(), phase 2: trackio (python3) did not answer within 1 s"},
        {"finish:raise", "end(): trackio (python3): ValueError: a bad day"},
    };
    assert_int_equal(e2e_run(t, PPO "--phases 3 --out without"), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(e2e_shell(t, "rm -rf r"), 0);
        assert_int_equal(e2e_shell(t,
                                   "FAKE=%s " TRACKER "\"$HOST\" " PPO
                                   "--sink trackio.so:timeout_s=1 --phases 3 --out r --threads 1",
                                   cases[i].fake),
                         0);
        e2e_says(t, cases[i].says);
        assert_int_equal(count(t->out, "sink.0 failed: sink trackio.so"), 1);
        e2e_same_tree(t, "r/checkpoints/latest/", "without/checkpoints/latest/");
    }
    // If the package is missing, the message says how to install it.
    assert_int_equal(e2e_shell(t, "rm -rf r fake/trackio.py; PYTHONPATH=fake \"$HOST\" " PPO
                                  "--sink trackio.so:python=\"$(command -v python3)\" --phases 1 "
                                  "--out r --threads 1"),
                     0);
    if (system("python3 -c 'import trackio' >/dev/null 2>&1") != 0)
        e2e_says(t, "-m pip install trackio; the run goes on without it");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_tracker_gets_the_numbers, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(the_trackers_are_sound, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_tracker_hears_of_ctrl_c, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_tracker_that_fails_is_left_out, setup, e2e_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
