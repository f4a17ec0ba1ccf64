// test_space.c: a run compares the size of its checkpoints with the free disk space, at its start
// and before each checkpoint.
#include "../e2e/e2e.h"

#include <string.h>

// The tiny model has 36 thousand parameters, so weights and moments take about 430 KiB.
#define SFT                                                                                        \
    "--algo sft.so --policy model --set policy.init=random --data texts.jsonl --set "              \
    "batch.size=8 --threads 1 "
#define FREE(kib)                                                                                  \
    "RLHF_TEST_FREE=" kib " ASAN_OPTIONS=\"verify_asan_link_order=0:$ASAN_OPTIONS\" "              \
    "LD_PRELOAD=\"$RLHF_TEST_PLUGINS/../faults/fault_space.so\" \"$HOST\" " SFT

static void run(struct e2e *t, int status, const char *command) {
    const int is = e2e_shell(t, "%s", command);
    if (is != status) fail_msg("exit %d\n%s", is, t->out);
}

static void at_the_start(void **state) {
    struct e2e *t = *state;
    run(t, 2, FREE("100") "--phases 2 --out a/b");
    e2e_says(t, "run.dir: a checkpoint of this run takes 4");
    e2e_says(t, " KiB, and only 100 KiB are free for a/b: free some space, or name another ");
    assert_false(e2e_exists(t, "a"));
    run(t, 2, FREE("100") "--phases 2 --out a --dry-run");
    e2e_says(t, "checkpoints: 4");
    run(t, 0, FREE("600") "--phases 2 --out a");
    e2e_says(t, "600 KiB are free for a, but the run has up to ");
    run(t, 0, FREE("600") "--phases 2 --set checkpoint.every_s=0 --out b");
    assert_null(strstr(t->out, "free for"));
    run(t, 0, FREE("600") "--phases 6 --set checkpoint.keep=0 --set checkpoint.every=2 --out c");
    e2e_says(t, "up to 3 checkpoints of 4");
    e2e_says(t, "; checkpoint.keep=N keeps fewer of them");
}

// The sizes that are foreseen are those of the files.
static void sizes(struct e2e *t, const char *args) {
    if (e2e_shell(
            t,
            "rm -rf d && \"$HOST\" %s --phases 1 --out d 2>&1 && cat $(find d/checkpoints/000001 "
            "-name "
            "'*.safetensors') | wc -c >bytes; \"$HOST\" %s --phases 1 --out e --dry-run 2>&1 | "
            "grep -o 'checkpoints: [0-9]* KiB' | grep -o '[0-9]*' >kib",
            args, args))
        fail_msg("%s", t->out);
    if (e2e_shell(t, "b=$(cat bytes) k=$(cat kib); echo $b bytes, $k KiB; "
                     "[ $((k * 1024)) -le $((b + 512)) ] && [ $((k * 1024 + 16384)) -ge $b ]"))
        fail_msg("%s: %s", args, t->out);
}

static void foreseen(void **state) {
    struct e2e *t = *state;
    sizes(t, SFT);
    sizes(t, SFT "--set checkpoint.dtype=bf16");
    sizes(t, SFT "--set optim.kind=muon");
    if (e2e_shell(t, "cp -rL d/checkpoints/latest base && rm -r base/state"))
        fail_msg("%s", t->out);
    sizes(t, "--algo sft.so --policy base --data texts.jsonl --set batch.size=8 --set "
             "policy.adapter.rank=4");
    sizes(t, "--algo ppo.so --policy base --reward period_count.so --prompts prompts.txt --set "
             "batch.size=8 --set sampling.max_new_tokens=8");
}

// A disk that fills up during the run: the earlier checkpoint stays, and the message says what to
// do.
static void during_the_run(void **state) {
    struct e2e *t = *state;
    if (e2e_shell(
            t, "echo 9999 >free; export RLHF_TEST_FREE_FILE=free; (n=0; while ! test -e "
               "a/checkpoints/000001/config.json && [ $((n += 1)) -le 6000 ]; do sleep 0.01; done; "
               "echo 100 >free) & " FREE(
                   "1") "--phases 2000 --set checkpoint.every=1 --out a; s=$?; wait; exit $s") != 1)
        fail_msg("%s", t->out);
    e2e_says(t, " was not written: it takes 4");
    e2e_says(t, " KiB, and only 100 KiB are free in ");
    e2e_says(t, ": free some space and resume the run");
    e2e_says(t, "go on: rlhf-host --resume a");
    assert_false(e2e_exists(t, "a/checkpoints/.writing"));
}

// After each checkpoint the run looks whether the next one fits, so that there is time to free
// space.
static void before_the_next(void **state) {
    struct e2e *t = *state;
    const char *line = "warning: the next checkpoint takes 4";
    run(t, 0, FREE("9999,9999,100,9999") "--phases 2 --set checkpoint.every=1 --out a");
    e2e_says(t, line);
    e2e_says(t, " KiB, and only 100 KiB are free in ");
    e2e_says(t, ": free some space before it is due, or the run ends there");
    run(t, 1, FREE("9999,9999,100") "--phases 2 --set checkpoint.every=1 --out b");
    e2e_says(t, line);
    e2e_says(t, "go on: rlhf-host --resume b");
    run(t, 0, FREE("9999,9999,100") "--phases 1 --out c"); // there is no next one
    assert_null(strstr(t->out, line));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(foreseen, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(at_the_start, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(during_the_run, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(before_the_next, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("space", tests, NULL, NULL);
}
