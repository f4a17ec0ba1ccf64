// test_memory_sweep.c: the N-th allocation of a run fails, either alone or together with all later
// ones. The run then either ends with one message about memory and status 1, or continues and ends
// with the same bytes as an undisturbed run. If the failed run has a checkpoint, the resumed run
// ends with these bytes, too.
//
// By default, tests some N of each scenario. With RLHF_TEST_LONG=K, tests every K-th N, so K = 1
// tests every N.
#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORT_TRIES 12ul // tries of each scenario and form

#define TINY                                                                                       \
    "--policy model --set policy.init=random --set batch.size=4 --set run.phases=2 "               \
    "--set checkpoint.every=1 --threads 1 --set compute.backend="
#define ROLLOUT "--prompts prompts.txt --set sampling.max_new_tokens=4 "

static const char *preload(void) {
    const char *lib = getenv("RLHF_FAIL_ALLOC");
    assert_non_null(lib);
    return lib;
}

static int count_of(const char *text, const char *part) {
    int n = 0;
    for (const char *p = text; (p = strstr(p, part)) != NULL; p++)
        n++;
    return n;
}

static unsigned long allocations(struct e2e *t, const char *args) {
    assert_int_equal(e2e_shell(t,
                               "RLHF_TEST_ALLOC_COUNT=count LD_PRELOAD='%s' \"$HOST\" %s "
                               "--out counted && cat count",
                               preload(), args),
                     0);
    const char *last = strrchr(t->out, ':'); // "... done ...: counted\n1234\n"
    assert_non_null(last);
    last = strchr(last, '\n');
    assert_non_null(last);
    return strtoul(last, NULL, 10);
}

// Fails the test. cmocka cuts long messages, so the output of the run is printed separately.
#define failed(said, ...)                                                                          \
    do {                                                                                           \
        print_error("%s\n", said);                                                                 \
        fail_msg(__VA_ARGS__);                                                                     \
    } while (0)

static void check_end(struct e2e *t, const char *form, unsigned long n, int status) {
    const char *said = t->out;
    if (status != 0 && status != 1) failed(said, "%s=%lu ended with status %d", form, n, status);
    if (status == 1 && (count_of(said, "error: ") != 1 ||
                        !(strstr(said, "memory") || strstr(said, "cannot allocate"))))
        failed(said, "%s=%lu is not one sentence about memory", form, n);
}

static void check_left(struct e2e *t, const char *form, unsigned long n, int status) {
    if (!e2e_exists(t, "s/checkpoints/latest")) {
        if (status == 0) fail_msg("%s=%lu ended with status 0 and no checkpoint", form, n);
        return;
    }
    if (status == 1 && e2e_shell(t, "\"$HOST\" --resume s") != 0)
        failed(t->out, "after %s=%lu the run does not resume", form, n);
    if (e2e_shell(t, "diff -r s/checkpoints/000002 counted/checkpoints/000002") != 0)
        failed(t->out, "after %s=%lu the last checkpoint differs", form, n);
}

static void sweep(struct e2e *t, const char *args) {
    static const char *const forms[] = {"RLHF_TEST_ALLOC_FAIL", "RLHF_TEST_ALLOC_FROM"};
    const unsigned long total = allocations(t, args);
    assert_true(total > 1000);
    const char *every = getenv("RLHF_TEST_LONG");
    const unsigned long asked = every ? strtoul(every, NULL, 10) : 0;
    const unsigned long step = asked ? asked : total / SHORT_TRIES;
    for (size_t f = 0; f < 2; f++)
        for (unsigned long n = 1 + f * step / 2; n <= total; n += step) {
            int status = e2e_shell(t, "rm -rf s; %s=%lu LD_PRELOAD='%s' \"$HOST\" %s --out s",
                                   forms[f], n, preload(), args);
            check_end(t, forms[f], n, status);
            check_left(t, forms[f], n, status);
        }
}

static void rollouts(void **state) {
    sweep(*state, "--algo ppo.so --reward period_count.so --reward ngram3.so:weight=-0.5 " TINY
                  "reference " ROLLOUT);
}

static void rollouts_on_the_cpu_backend(void **state) {
    sweep(*state, "--algo ppo.so --reward period_count.so " TINY "cpu " ROLLOUT);
}

static void groups_with_a_reward_of_texts(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, "--algo classify.so --policy model --data labeled.jsonl --set "
                                "policy.init=random --set score.labels=NEGATIVE,POSITIVE --set "
                                "run.phases=1 --out judge"),
                     0);
    sweep(t, "--algo grpo.so --reward imdb.so:model=judge/checkpoints/latest,self_test=false "
             "--set algo.group_size=2 " TINY "reference " ROLLOUT);
}

static void rows_of_text(void **state) {
    sweep(*state, "--algo sft.so --data texts.jsonl " TINY "reference");
}

static void preferences(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "pairs.jsonl",
              "{\"prompt\": \"It\", \"chosen\": \" is\", \"rejected\": \" was\"}\n"
              "{\"prompt\": \"The\", \"chosen\": \" film\", \"rejected\": \" thing\"}\n"
              "{\"prompt\": \"It\", \"chosen\": \" was the\", \"rejected\": \" in\"}\n"
              "{\"prompt\": \"I\", \"chosen\": \" think\", \"rejected\": \" the\"}\n");
    sweep(t,
          "--algo bradley_terry.so --data pairs.jsonl --set score.calibrate=0 " TINY "reference");
}

// Tests compute.backend=auto on a machine without a card. The CUDA backend must not be loaded
// there: its constructor allocates 30,000 times, so without memory it would crash.
static void no_card(void **state) {
    struct e2e *t = *state;
    const char *lib = getenv("RLHF_FRAGILE_CUDA");
    assert_non_null(lib);
    if (e2e_shell(t, "ls /dev/nvidiactl /dev/dxg /proc/driver/nvidia 2>/dev/null | grep -q . || "
                     "cat /sys/bus/pci/devices/*/vendor 2>/dev/null | grep -q 0x10de") == 0)
        skip(); // there is a card, so the backend is loaded
    assert_int_equal(
        e2e_shell(t,
                  "b=$(dirname \"$(dirname \"$HOST\")\") && l=gpu/lib/rlhf/1 && "
                  "mkdir -p gpu/bin $l/kernels && cp \"$HOST\" gpu/bin/ && ln -s \"$b\"/share "
                  "gpu/share && ln -s \"$b\"/lib/rlhf/1/kernels/*.so $l/kernels/ && for k in algos "
                  "models rewards sinks; do ln -s \"$b\"/lib/rlhf/1/$k $l/; done && ln -sf '%s' "
                  "$l/kernels/kernels_cuda.so",
                  lib),
        0);
    static const unsigned long each[] = {2000, 4000, 8000, 16000, 24000, 30000};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        const int status = e2e_shell(
            t,
            "rm -rf s; RLHF_TEST_ALLOC_FAIL=%lu LD_PRELOAD='%s' gpu/bin/rlhf-host --algo sft.so "
            "--data texts.jsonl " TINY "auto --set log.level=debug --out s",
            each[i], preload());
        check_end(t, "RLHF_TEST_ALLOC_FAIL", each[i], status);
    }
    assert_int_equal(e2e_shell(t,
                               "rm -rf s; gpu/bin/rlhf-host --algo sft.so --data texts.jsonl " TINY
                               "auto --set log.level=debug --out s"),
                     0);
    e2e_says(t, "no GPU: there is no NVIDIA card (no /dev/nvidiactl");
}

// With an argument, runs only the tests whose names match it, for example "rollouts*".
int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rollouts, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(rollouts_on_the_cpu_backend, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(groups_with_a_reward_of_texts, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(rows_of_text, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(preferences, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(no_card, e2e_setup, e2e_teardown),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("memory_sweep", tests, NULL, NULL);
}
