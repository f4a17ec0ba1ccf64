// test_e2e_injected.c: failures injected into rewards in every form that a reward can have: no run
// is lost, each failure is named, nothing is left behind, and with rewards.on_failure=retry the
// last checkpoint is that of a run in which nothing failed, byte for byte.
//
// usage: test_e2e_injected [FAILURES]: at least so many over all forms; a share of them unless
// said.
#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN                                                                                        \
    "--algo grpo.so:group_size=4,kl_placement=none,epochs=1 --policy model "                       \
    "--set policy.init=random --prompts prompts.txt --set batch.size=16 "                          \
    "--set sampling.max_new_tokens=6 --set optim.lr=0.01 --set log.tensorboard=false "             \
    "--set log.samples=0 --set log.progress=off --set run.phases=10 --threads 1 "                  \
    "--set rewards.isolate=never "                                                                 \
    "--set rewards.on_failure=retry --set rewards.retries=50 "

static long wanted = 24; // failures, over all forms

// A form of running a reward: the reward with and without failures of a seed.
struct form {
    const char *name, *clean, *faulty; // faulty: %d is the seed
    const char *limits;
};

static const struct form forms[] = {
    {"in the process", "--reward \"$RLHF_TEST_PLUGINS/faulty_reward.so:how=none,tokens=true\"",
     "--reward "
     "\"$RLHF_TEST_PLUGINS/faulty_reward.so:how=rows,every=8,times=2,tokens=true,seed=%d\"",
     ""},
    {"exec.so", "--reward \"exec.so:command='$RLHF_TEST_PLUGINS/faulty_program' 0 0\"",
     "--reward \"exec.so:command='$RLHF_TEST_PLUGINS/faulty_program' %d 10\"",
     "--set rewards.timeout_s=3 --set rewards.memory_mib=256"},
    {"exec.so, asked early", "--reward \"exec.so:command='$RLHF_TEST_PLUGINS/faulty_program' 0 0\"",
     "--reward \"exec.so:command='$RLHF_TEST_PLUGINS/faulty_program' %d 10\" "
     "--set rewards.overlap=true",
     "--set rewards.timeout_s=3 --set rewards.memory_mib=256"},
    {"python.so", "--reward python.so:file=$RLHF_TEST_SOURCE/faulty.py,function=pays",
     "--reward python.so:file=$RLHF_TEST_SOURCE/faulty.py,function=pays",
     "--set rewards.timeout_s=10 --set rewards.memory_mib=2048"},
};

static long count(struct e2e *t, const char *script) {
    assert_int_equal(e2e_shell(t, "%s", script), 0);
    return strtol(t->out, NULL, 10);
}

static void nothing_is_left_behind(struct e2e *t) {
    assert_int_equal(
        e2e_shell(t, "for p in $(cat children 2>/dev/null); do "
                     "s=$(sed 's/.*) //; s/ .*//' /proc/$p/stat 2>/dev/null); "
                     "[ -z \"$s\" ] || [ \"$s\" = Z ] || { echo \"$p lives\"; exit 1; }; done"),
        0);
}

// Failures of one run: all but those that are none to the reward's host (a slow answer).
static long inject(struct e2e *t, const struct form *f, int seed) {
    char reward[512];
    snprintf(reward, sizeof reward, f->faulty, seed);
    assert_int_equal(e2e_shell(t, "rm -rf f faults asked children said"), 0);
    if (e2e_shell(t,
                  "export FAULTS=%d,3; \"$HOST\" " RUN "%s %s --set run.dir=f > said 2>&1 || "
                  "{ tail -5 said; exit 1; }",
                  seed, f->limits, reward) != 0)
        fail_msg("%s, seed %d: %s", f->name, seed, t->out);
    if (e2e_shell(t, "for x in model.safetensors state/optimizer.safetensors state/run.json; do "
                     "cmp c/checkpoints/000010/$x f/checkpoints/000010/$x || exit 1; done") != 0)
        fail_msg("%s, seed %d: %s", f->name, seed, t->out);
    nothing_is_left_behind(t);
    assert_int_equal(e2e_shell(t, "! grep -q \"$(printf '\\033')\" said"), 0);
    const long told = count(t, "grep -c 'score(), phase [0-9]*: ' said || true");
    if (f == forms) return told;
    const long faults = count(t, "cat faults 2>/dev/null | grep -vcE 'slow|nan' || true");
    if (told < faults) fail_msg("%s, seed %d: %ld failures, %ld told", f->name, seed, faults, told);
    return faults;
}

static int runs_here(const struct form *f) {
    if (strcmp(f->name, "python.so") != 0) return 1;
    return system("python3 -c 'import sys' >/dev/null 2>&1") == 0;
}

static void no_run_is_lost(void **state) {
    struct e2e *t = *state;
    const int n = (int)(sizeof forms / sizeof *forms);
    long all = 0;
    setenv("RLHF_TEST_SOURCE", SOURCE_DIR, 1);
    for (int k = 0; k < n; k++) {
        long here = 0;
        int seed = 1;
        if (!runs_here(&forms[k])) continue;
        if (e2e_shell(t, "rm -rf c; \"$HOST\" " RUN "%s --set run.dir=c", forms[k].clean) != 0)
            fail_msg("%s: %s", forms[k].name, t->out);
        for (; here * n < wanted; seed++)
            here += inject(t, &forms[k], seed);
        print_message("%s: %ld failures in %d runs\n", forms[k].name, here, seed - 1);
        all += here;
    }
    print_message("%ld failures, no run lost\n", all);
}

int main(int argc, char **argv) {
    if (argc > 1) wanted = strtol(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_run_is_lost, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_injected", tests, NULL, NULL);
}
