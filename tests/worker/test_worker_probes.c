// test_worker_probes.c: runs hostile probes (probe.h) in a real worker, as this user and as the
// user `nobody`, on this kernel and on simulated kernels without namespaces or landlock (walled.c).
// Each protection that the host lists as in force must refuse its probes, and the bait must be
// unchanged.
#include "worker/attack.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void nothing_gets_through(struct e2e *t, const char *as, const char *options) {
    attack_refused(t, as, ATTACK_PLUGIN, options);
}

static int attack(struct e2e *t, const struct attacked *a, const char *as, const char *options) {
    return attack_by(t, a, as, ATTACK_PLUGIN, options);
}

static void as_this_user(void **state) { nothing_gets_through(*state, "", ""); }
static void without_namespaces(void **state) { nothing_gets_through(*state, "no-namespaces", ""); }
static void without_user_namespaces(void **state) { nothing_gets_through(*state, "no-users", ""); }
static void without_landlock(void **state) { nothing_gets_through(*state, "no-landlock", ""); }

static void without_both(void **state) {
    nothing_gets_through(*state, "no-namespaces no-landlock", "");
}

// Simulates the landlock version of Debian 12's kernel, and then the first version.
static void with_landlock_of_linux_6_1(void **state) {
    nothing_gets_through(*state, "no-namespaces landlock=2", "");
}

static void with_landlock_of_linux_5_13(void **state) {
    nothing_gets_through(*state, "no-namespaces landlock=1", "");
}

static void with_landlock_of_linux_6_7(void **state) {
    nothing_gets_through(*state, "no-namespaces landlock=4", "");
}

// Files must not grow. This includes files that the worker shares with the host.
static void with_a_memory_limit(void **state) {
    struct e2e *t = *state;
    static const char *const as[] = {"", "no-namespaces", "nobody", "nobody no-namespaces"};
    for (int k = 0; k < (geteuid() == 0 ? 4 : 2); k++) {
        nothing_gets_through(t, as[k], "\" --set \"rewards.memory_mib=4096");
        assert_int_equal(e2e_shell(t, "grep -q ' G.extend_output=[1-9]' out || "
                                      "grep 'not in force.*memory_mib for each' out"),
                         0);
    }
}

// The network is open; the machine's own services are not.
static void with_a_network(void **state) {
    struct e2e *t = *state;
    static const char *const as[] = {"", "no-namespaces"};
    for (int k = 0; k < 2; k++) {
        nothing_gets_through(t, as[k], ",network=true");
        assert_int_equal(e2e_shell(t, "grep 'the network is open to it (network=true)' out && "
                                      "grep ' N.tcp=0 ' out"),
                         0);
    }
}

static void as_nobody(void **state) {
    if (geteuid() != 0) skip();
    nothing_gets_through(*state, "nobody", "");
}

static void as_nobody_without_namespaces(void **state) {
    if (geteuid() != 0) skip();
    nothing_gets_through(*state, "nobody no-namespaces", "");
}

static void as_nobody_without_landlock(void **state) {
    if (geteuid() != 0) skip();
    nothing_gets_through(*state, "nobody no-landlock", "");
}

static void as_nobody_without_both(void **state) {
    if (geteuid() != 0) skip();
    nothing_gets_through(*state, "nobody no-namespaces no-landlock", "");
}

// Without a worker, most probes succeed. This shows that the probes are real attacks.
static void without_walls_most_get_through(void **state) {
    struct e2e *t = *state;
    struct attacked a;
    struct attack_result r;
    const char *as = geteuid() == 0 ? "nobody" : "";
    attack_lay(t, &a, geteuid() == 0);
    const int status = attack(t, &a, as, ",isolate=false");
    attack_take_up(&a);
    if (status == ATTACK_SKIPPED) skip();
    assert_int_equal(status, 0);
    attack_count(t, NULL, &r);
    if (r.open < r.n / 2) fail_msg("only %d of %d got through:\n%s", r.open, r.n, t->out);
}

// A report that the plugin's constructor forges is ignored, even if the constructor takes the
// worker's place.
static void a_constructor_cannot_forge_it(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {"walls", "none"};
    for (int k = 0; k < 2; k++) {
        e2e_shell(t,
                  "rm -rf r; RLHF_PROBE_FORGE=%s \"$HOST\" " ATTACK_RUN
                  "--reward \"$RLHF_TEST_PLUGINS/probe_reward.so\"",
                  how[k]);
        if (strstr(t->out, "forged walls")) fail_msg("believed:\n%s", t->out);
        assert_int_equal(e2e_shell(t, "! grep -s 'forged walls' r/manifest.json"), 0);
    }
    assert_int_equal(e2e_shell(t, "grep '\"worker\": \"no new privileges' r/manifest.json"), 0);
}

static void alone(struct e2e *t, const char *probe, int fails) {
    struct attacked a;
    attack_lay(t, &a, 0);
    char options[64];
    snprintf(options, sizeof options, ",probe=%s", probe);
    const int status = attack(t, &a, "", options);
    attack_take_up(&a);
    if (status != fails) fail_msg("%s: status %d:\n%s", probe, status, t->out);
}

static void nonsense_ends_the_worker(void **state) {
    struct e2e *t = *state;
    alone(t, "unknown_call", 1);
    e2e_says(t, "sent what no worker sends");
    alone(t, "endless_frame", 1);
    e2e_says(t, "sent what no worker sends");
}

static void at_rest(struct e2e *t, const char *as, const char *probe, const char *want,
                    const char *says) {
    char reward[512];
    snprintf(reward, sizeof reward, ATTACK_PLUGIN ",probe=%s", probe);
    attack_at_rest(t, as, reward, want, says);
}

// Between calls a child does not run, whatever signal it ignores.
static void a_child_rests_between_calls(void **state) {
    for (int k = 0; k < ATTACK_KERNELS; k++)
        if (attack_can_be(attack_kernels[k]))
            at_rest(*state, attack_kernels[k], "burn", "T", "found:T:");
}

// A child that wakes itself between calls is ended together with its worker. The next call would
// report this, but here the current call already ends the run.
static void a_child_that_will_not_rest_is_ended(void **state) {
    for (int k = 0; k < ATTACK_KERNELS; k++)
        if (attack_can_be(attack_kernels[k]))
            at_rest(*state, attack_kernels[k], "wake", "", "signal 24 (CPU");
}

// The children of `plugin check` have separate sessions, too.
static void a_check_has_no_terminal(void **state) {
    struct e2e *t = *state;
    e2e_terminal(t, 80,
                 "RLHF_PROBE_TERMINAL=1 \"$HOST\" plugin check "
                 "\"$RLHF_TEST_PLUGINS/probe_reward.so\"");
    e2e_says(t, "no terminal");
    if (strstr(t->out, "has a terminal")) fail_msg("opened:\n%s", t->out);
}

// Ctrl-C does not reach isolated programs. So the host ends these programs, without waiting for
// their time limit.
static void an_inspection_can_be_interrupted(void **state) {
    struct e2e *t = *state;
    e2e_shell(t, "RLHF_PROBE_HANG=1 \"$HOST\" plugin info "
                 "\"$RLHF_TEST_PLUGINS/probe_reward.so\" >out 2>&1 & p=$!; "
                 "for i in 1 2 3 4 5 6 7 8 9; do grep -qs . /proc/$p/task/$p/children && break; "
                 "sleep 0.2; done; sleep 0.5; "
                 "kill -INT $p; wait $p; cat out");
    e2e_says(t, "(signal 2, Interrupt)");
}

// With an argument, runs only the tests whose names match it, for example "without*".
int main(int argc, char **argv) {
#define PROBE_TEST(f) cmocka_unit_test_setup_teardown(f, e2e_setup, e2e_teardown)
    const struct CMUnitTest tests[] = {
        PROBE_TEST(as_this_user),
        PROBE_TEST(without_namespaces),
        PROBE_TEST(without_user_namespaces),
        PROBE_TEST(without_landlock),
        PROBE_TEST(without_both),
        PROBE_TEST(with_landlock_of_linux_5_13),
        PROBE_TEST(with_landlock_of_linux_6_1),
        PROBE_TEST(with_landlock_of_linux_6_7),
        PROBE_TEST(with_a_memory_limit),
        PROBE_TEST(with_a_network),
        PROBE_TEST(as_nobody),
        PROBE_TEST(as_nobody_without_namespaces),
        PROBE_TEST(as_nobody_without_landlock),
        PROBE_TEST(as_nobody_without_both),
        PROBE_TEST(without_walls_most_get_through),
        PROBE_TEST(a_constructor_cannot_forge_it),
        PROBE_TEST(nonsense_ends_the_worker),
        PROBE_TEST(a_child_rests_between_calls),
        PROBE_TEST(a_child_that_will_not_rest_is_ended),
        PROBE_TEST(a_check_has_no_terminal),
        PROBE_TEST(an_inspection_can_be_interrupted),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("worker probes", tests, NULL, NULL);
}
