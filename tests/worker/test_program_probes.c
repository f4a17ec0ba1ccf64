// test_program_probes.c: runs the probes of test_worker_probes.c in programs, Python functions and
// environments that the user named. If they are isolated, they meet the same restrictions as a
// plugin in a worker.
#include "worker/attack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// An isolated program meets the same restrictions.
static void a_program_in_isolation(void **state) {
    struct e2e *t = *state;
    static const char *const as[] = {
        "",       "no-namespaces",       "no-landlock", "no-namespaces no-landlock",
        "nobody", "nobody no-namespaces"};
    for (size_t k = 0; k < sizeof as / sizeof *as; k++)
        if (attack_can_be(as[k])) attack_refused(t, as[k], ATTACK_PROGRAM, "");
    assert_int_equal(e2e_shell(t, "grep '\"worker\": \"no new privileges' r/manifest.json"), 0);
    attack_refused(t, "", ATTACK_PROGRAM, "\" --set \"rewards.memory_mib=4096");
    attack_refused(t, "", ATTACK_PROGRAM, ",network=true");
    assert_int_equal(e2e_shell(t, "grep 'the network is open to it (network=true)' out && "
                                  "grep ' N.tcp=0 ' out"),
                     0);
}

// Without isolation, a program may do whatever the user may. The run reports this at its start.
static void a_program_with_the_users_rights(void **state) {
    struct e2e *t = *state;
    struct attacked a;
    struct attack_result r;
    attack_lay(t, &a, 0);
    const int status = attack_by(t, &a, "",
                                 "exec.so:command='$RLHF_TEST_PLUGINS/probe_program' all "
                                 "$PWD/bait",
                                 "");
    attack_take_up(&a);
    assert_int_equal(status, 0);
    e2e_says(t, "probe_program runs with your rights: your files and the network are open to it "
                "(isolate=true closes them)");
    attack_count(t, NULL, &r);
    if (r.n < ATTACK_FEWEST) fail_msg("only %d probes in:\n%s", r.n, t->out);
    assert_int_equal(e2e_shell(t, "grep ' N.tcp=0 ' out && grep ' F.write=0 ' out"), 0);
    assert_int_equal(e2e_shell(t, "! grep '\"worker\"' r/manifest.json"), 0);
}

// A program may start many processes. When the program ends, none of them is left. If there is a
// process limit, it can start only a few.
static void a_program_that_forks(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {"", ",isolate=true"};
    for (int k = 0; k < 2; k++) {
        assert_int_equal(e2e_shell(t,
                                   "rm -rf r; (ulimit -u 4000 2>/dev/null; \"$HOST\" " ATTACK_RUN
                                   "--set log.level=debug --reward \"exec.so:command="
                                   "'$RLHF_TEST_PLUGINS/probe_program' forks%s\") 2>&1",
                                   how[k]),
                         0);
        const char *line = strstr(t->out, "forked: ");
        const char *counted = strstr(t->out, "at most 1024 processes");
        const char *missing = strstr(t->out, "not in force");
        assert_non_null(line);
        if (atoi(line + 8) < 500) fail_msg("%s", t->out);
        if (counted && (!missing || counted < missing)) assert_true(atoi(line + 8) <= 1024);
        assert_int_equal(e2e_shell(t, "! cat /proc/[0-9]*/comm 2>/dev/null | grep probe-forked"),
                         0);
    }
}

// A Python function is restricted in the same way as its interpreter.
static void a_function_in_isolation(void **state) {
    struct e2e *t = *state;
    if (system("python3 -c 'import sys' >/dev/null 2>&1") != 0) skip();
    e2e_write(t, "tries.py",
              "import os, socket\n"
              "def tried(what):\n"
              "    try:\n"
              "        what()\n"
              "        return 1\n"
              "    except OSError:\n"
              "        return 0\n"
              "def pays(prompts, log_metric, **kw):\n"
              "    log_metric('write', tried(lambda: open('written', 'w')))\n"
              "    log_metric('net', tried(lambda: socket.socket()))\n"
              "    log_metric('tty', tried(lambda: open('/dev/tty')))\n"
              "    log_metric('read', tried(lambda: open('tries.py')))\n"
              "    return [1.0] * len(prompts)\n");
    static const struct {
        const char *how;
        double write, net;
    } all[] = {{"", 1, 1}, {",isolate=true", 0, 0}, {",isolate=true,network=true", 0, 1}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(e2e_shell(t,
                                   "rm -rf r written; \"$HOST\" " ATTACK_RUN
                                   "--reward python.so:file=tries.py,function=pays%s 2>&1",
                                   all[i].how),
                         0);
        const int held = !strstr(t->out, "not in force: no writing");
        json_t *rows = e2e_metrics(t, "r");
        if (held) assert_true(e2e_metric(rows, 0, "rewards/python/write") == all[i].write);
        assert_true(e2e_metric(rows, 0, "rewards/python/net") == all[i].net);
        assert_true(e2e_metric(rows, 0, "rewards/python/tty") == 0);
        assert_true(e2e_metric(rows, 0, "rewards/python/read") == 1);
        json_decref(rows);
        if (held) assert_int_equal(e2e_exists(t, "written"), all[i].write == 1);
    }
}

// A class of env_python.so is restricted in the same way.
static void a_class_in_isolation(void **state) {
    struct e2e *t = *state;
    if (system("python3 -c 'import sys' >/dev/null 2>&1") != 0) skip();
    e2e_write(t, "game.py",
              "import socket\n"
              "def tried(what):\n"
              "    try:\n"
              "        what()\n"
              "        return 1\n"
              "    except OSError:\n"
              "        return 0\n"
              "class Game:\n"
              "    def reset(self, **row):\n"
              "        return None\n"
              "    def get_reward(self):\n"
              "        return 100 * tried(lambda: open('written', 'w')) + 10 * tried(socket.socket)"
              " + tried(lambda: open('game.py'))\n");
    static const struct {
        const char *how;
        double pays;
    } all[] = {{"", 111}, {",isolate=true", 1}, {",isolate=true,network=true", 11}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(e2e_shell(t,
                                   "rm -rf r written; \"$HOST\" " ATTACK_RUN
                                   "--env env_python.so:file=game.py,class=Game%s 2>&1",
                                   all[i].how),
                         0);
        const int held = !strstr(t->out, "not in force: no writing");
        json_t *rows = e2e_metrics(t, "r");
        if (held) assert_float_equal(e2e_metric(rows, 0, "objective/scores"), all[i].pays, 0);
        json_decref(rows);
        if (held) assert_int_equal(e2e_exists(t, "written"), all[i].pays > 100);
    }
}

// An isolated program does not run between calls. If it wakes itself, it is ended.
static void a_program_rests_between_calls(void **state) {
#define LEAVES "exec.so:command='$RLHF_TEST_PLUGINS/probe_program' "
    for (int k = 0; k < ATTACK_KERNELS; k++)
        if (attack_can_be(attack_kernels[k]))
            attack_at_rest(*state, attack_kernels[k], LEAVES "burn,isolate=true", "T", "found:T:");
    attack_at_rest(*state, "", LEAVES "wake,isolate=true", "", "found::");
    attack_at_rest(*state, "", LEAVES "burn", "R", "found:R:");
}

// Environments and their programs meet the same restrictions, in a worker and when isolated.
static void environments(void **state) {
    struct e2e *t = *state;
    static const char *const as[] = {"", "no-namespaces no-landlock", "nobody"};
    static const char *const by[] = {
        "$RLHF_TEST_PLUGINS/probe_environment.so:dir=$PWD/bait",
        "env_exec.so:command='$RLHF_TEST_PLUGINS/probe_program' plays $PWD/bait,isolate=true"};
    for (int i = 0; i < 2; i++) {
        char env[256];
        snprintf(env, sizeof env, "period_count.so\" --env \"%s", by[i]);
        for (size_t k = 0; k < sizeof as / sizeof *as; k++)
            if (attack_can_be(as[k])) attack_refused(t, as[k], env, "");
        assert_int_equal(e2e_shell(t, "grep '\"worker\": \"no new privileges' r/manifest.json"), 0);
        attack_refused(t, "", env, ",network=true");
        assert_int_equal(e2e_shell(t, "grep 'the network is open to it (network=true)' out && "
                                      "grep ' N.tcp=0 ' out"),
                         0);
        struct attacked a;
        struct attack_result r;
        attack_lay(t, &a, 0);
        char open[256];
        snprintf(open, sizeof open, "%s", env);
        char *isolate = strstr(open, ",isolate=true");
        if (isolate) *isolate = 0;
        const int status = attack_by(t, &a, "", open, ",isolate=false");
        attack_take_up(&a);
        if (status != 0) fail_msg("%s", t->out);
        attack_count(t, NULL, &r);
        assert_true(r.n >= ATTACK_FEWEST);
        assert_int_equal(e2e_shell(t, "grep ' N.tcp=0 ' out && grep ' F.write=0 ' out"), 0);
    }
}

// Programs cannot open the terminal either. A row scores 1 if its program could open it.
static void a_program_has_no_terminal(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "pay",
              "#!/bin/sh\nif (: </dev/tty) 2>/dev/null; then r=1; else r=0; fi\n"
              "while read row; do echo $r; done\n");
    assert_int_equal(e2e_terminal(t, 80,
                                  "chmod +x pay; (: </dev/tty) || exit 3; \"$HOST\" " ATTACK_RUN
                                  "--reward exec.so:command=./pay >out 2>&1"),
                     0);
    json_t *rows = e2e_metrics(t, "r");
    assert_true(e2e_metric(rows, 0, "objective/scores") == 0);
    json_decref(rows);
}

// With an argument, runs only the tests whose names match it, for example "a_program*".
int main(int argc, char **argv) {
#define PROBE_TEST(f) cmocka_unit_test_setup_teardown(f, e2e_setup, e2e_teardown)
    const struct CMUnitTest tests[] = {
        PROBE_TEST(a_program_in_isolation),
        PROBE_TEST(a_program_with_the_users_rights),
        PROBE_TEST(a_program_that_forks),
        PROBE_TEST(a_function_in_isolation),
        PROBE_TEST(environments),
        PROBE_TEST(a_class_in_isolation),
        PROBE_TEST(a_program_rests_between_calls),
        PROBE_TEST(a_program_has_no_terminal),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("program probes", tests, NULL, NULL);
}
