// test_e2e_inputs.c: a resumed run reads the same rows and models as before, or reports what has
// changed.
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define SFT                                                                                        \
    "--algo sft.so --data texts.jsonl --policy model --set policy.init=random "                    \
    "--set batch.size=4 --set data.eval_path=labeled.jsonl --set data.eval_every=1 "
#define PPO                                                                                        \
    "--algo ppo.so --prompts prompts.txt --set batch.size=4 --set sampling.max_new_tokens=4 "      \
    "--set algo.minibatches=1 --reward bt_rm.so:model=rm "                                         \
    "--judge imdb.so:model=c,self_test=false "
// Flips one byte of the last weight.
#define FLIP(dir)                                                                                  \
    "f=" dir "/model.safetensors; s=$(wc -c < $f); "                                               \
    "printf '\\001' | dd of=$f bs=1 seek=$((s - 3)) conv=notrunc 2>/dev/null"

// A policy p/, a classifier c/ and a reward model rm/.
static int setup(void **state) {
    if (e2e_setup(state) != 0) return -1;
    struct e2e *t = *state;
    e2e_write(t, "pairs.jsonl",
              "{\"prompt\": \"It was\", \"chosen\": \" a fine film\", \"rejected\": \" dull\"}\n"
              "{\"prompt\": \"I think\", \"chosen\": \" it is\", \"rejected\": \" not\"}\n");
    return e2e_shell(t,
                     "H=\"$HOST --threads 1 --policy model --set policy.init=random --phases 1 "
                     "--set batch.size=2\"; $H --algo sft.so --data texts.jsonl --out a && "
                     "$H --algo classify.so --data labeled.jsonl "
                     "--set score.labels=NEGATIVE,POSITIVE --out b && $H --algo bradley_terry.so "
                     "--data pairs.jsonl --set score.calibrate=0 --out d && "
                     "mv a/checkpoints/000001 p && mv b/checkpoints/000001 c && "
                     "mv d/checkpoints/000001 rm && rm -rf a b d && "
                     "echo '{\"add_bos_token\": true}' > rm/tokenizer_config.json")
               ? -1
               : 0;
}

// Resuming run r is refused for one reason, and leaves the run unchanged.
static void refused(struct e2e *t, const char *setting, const char *path, const char *what) {
    char says[128];
    snprintf(says, sizeof says, "has changed: %s ", setting);
    assert_int_equal(e2e_shell(t, "rm -rf before; rm r/lock; cp -a r before; \"$HOST\" --resume r "
                                  "--phases 9 --threads 1"),
                     2);
    e2e_says(t, says);
    e2e_says(t, path);
    e2e_says(t, what);
    e2e_says(t, "--allow-changed-inputs");
    assert_null(strstr(t->out, "), "));
    assert_int_equal(e2e_shell(t, "rm r/lock"), 0);
    e2e_same_tree(t, "r", "before");
    assert_int_equal(e2e_run(t, "--resume r --phases 9 --dry-run"), 2);
}

static void rows_of_a_file(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, SFT "--phases 1 --out r"), 0);
    assert_int_equal(e2e_run(t, "--resume r --phases 2"), 0);
    assert_int_equal(e2e_shell(t, "cp texts.jsonl kept; sed -i '1s/a/e/' texts.jsonl"), 0);
    refused(t, "data.path", "/texts.jsonl (", "sha256 ");
    assert_int_equal(e2e_shell(t, "cp kept texts.jsonl; cp labeled.jsonl kept; "
                                  "head -n 1 kept >> labeled.jsonl"),
                     0);
    refused(t, "data.eval_path", "/labeled.jsonl (", "bytes ");
    assert_int_equal(e2e_shell(t, "cp kept labeled.jsonl"), 0);
    assert_int_equal(e2e_run(t, "--resume r --phases 3"), 0);
}

static void prompts(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, PPO "--policy p --phases 1 --out r"), 0);
    assert_int_equal(e2e_shell(t, "cp prompts.txt kept; echo 'It is' >> prompts.txt"), 0);
    refused(t, "prompts.path", "/prompts.txt (", "bytes ");
    assert_int_equal(e2e_run(t, "--resume r --phases 2 --allow-changed-plugins"), 2);
    // The next resume compares with the new files. The manifest keeps the old list, too.
    assert_int_equal(e2e_run(t, "--resume r --phases 2 --allow-changed-inputs"), 0);
    assert_int_equal(e2e_run(t, "--resume r --phases 3"), 0);
    assert_int_equal(e2e_shell(t, "grep -q '\"earlier\"' r/manifest.json && "
                                  "test $(grep -c '\"prompts.path\"' r/manifest.json) = 2"),
                     0);
    assert_int_equal(e2e_shell(t, "cp kept prompts.txt"), 0);
    refused(t, "prompts.path", "/prompts.txt (", "bytes ");
    assert_int_equal(e2e_run(t, SFT "--allow-changed-inputs --out n"), 2);
    e2e_says(t, "--allow-changed-inputs goes with --resume");
}

static void models(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *change, *setting, *path;
    } cases[] = {
        {FLIP("p"), "policy.path (the reference)", "/p ("},
        {FLIP("rm"), "a reward's reward model", "/rm ("},
        {FLIP("c"), "a reward's classifier", "/c ("},
        {"sed -i 's/\"NEGATIVE\"/\"BAD\"/g' c/config.json", "a reward's classifier", "/c ("},
    };
    assert_int_equal(e2e_run(t, PPO "--policy p --phases 1 --out r"), 0);
    assert_int_equal(e2e_shell(t, "cp -r r as_it_was; cp -r p p0; cp -r rm rm0; cp -r c c0"), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(e2e_shell(t, "%s", cases[i].change), 0);
        refused(t, cases[i].setting, cases[i].path, "is now ");
        assert_int_equal(e2e_shell(t, "for d in p rm c; do rm -r $d; cp -r $d\"0\" $d; done"), 0);
    }
    assert_int_equal(e2e_run(t, "--resume r --phases 2"), 0);
    assert_int_equal(e2e_run(t, PPO "--policy p --phases 2 --out straight"), 0);
    e2e_same_tree(t, "r/checkpoints/000002", "straight/checkpoints/000002");
    // In the first case manifest.json does not list an input, and in the second case it lacks the
    // whole list. The author of the run may have removed the input or the list, so the resume is
    // refused. A run that is resumed with --allow-changed-inputs gets a new list.
    assert_int_equal(e2e_shell(t, "cp -r r left_out; sed -i 's/reward.s classifier/other thing/' "
                                  "left_out/manifest.json; $HOST --resume left_out --phases 3 "
                                  "--threads 1"),
                     2);
    e2e_says(t, "has changed: a reward's classifier ");
    e2e_says(t, "/c (manifest.json does not list it)");
    assert_int_equal(e2e_shell(t, "rm -r r; mv as_it_was r; sed -i "
                                  "'/^  \"inputs\": \\[/,/^  \\]/d; s/^  \\],$/  ]/' "
                                  "r/manifest.json; ! grep inputs r/manifest.json"),
                     0);
    assert_int_equal(e2e_shell(t, FLIP("rm")), 0);
    assert_int_equal(e2e_run(t, "--resume r --phases 2"), 2);
    e2e_says(t, "what the run 'r' read is not known (its manifest.json has no list \"inputs\"): ");
    e2e_says(t, "it would read prompts.path /");
    e2e_says(t, "--allow-changed-inputs goes on with these files");
    assert_int_equal(e2e_run(t, "--resume r --phases 2 --allow-changed-inputs"), 0);
    e2e_says(t, "the run reads files outside its directory: prompts.path /");
    e2e_says(t, "/prompts.txt, policy.path (the reference) /");
    assert_int_equal(e2e_shell(t, "rm -r rm; mv rm0 rm"), 0);
    refused(t, "a reward's reward model", "/rm (", "sha256 ");
}

static void a_reference_of_its_own(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, "--algo dpo.so --data pairs.jsonl --policy p --set "
                                "reference.path=p --set batch.size=2 --phases 1 --out r"),
                     0);
    assert_int_equal(e2e_shell(t, FLIP("p")), 0);
    refused(t, "reference.path", "/p (", "sha256 ");
}

// The checkpoint contains a moving reference and a reward model in training.
static void what_the_checkpoint_holds_may_change(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, "--algo grpo_iterative.so:replay=true,group_size=4,rm_batch=4,"
                                "iteration_phases=1 --reward bt_rm.so:model=rm --judge "
                                "\"$RLHF_TEST_PLUGINS/even_judge.so\" --policy p "
                                "--prompts prompts.txt --set sampling.max_new_tokens=4 "
                                "--set batch.size=8 --set score.calibrate=0 --phases 1 --out r"),
                     0);
    assert_int_equal(e2e_shell(t, FLIP("p") "; " FLIP("rm")), 0);
    assert_int_equal(e2e_run(t, "--resume r --trust-run --phases 2"), 0);
}

static void expect_ok(struct e2e *t, int status) {
    if (status) fail_msg("exit status %d:\n%s", status, t->out);
}

// Inputs that were moved must be given again. They must equal the inputs at the start of the run.
static void moved_inputs(void **state) {
    struct e2e *t = *state;
#define GRPO                                                                                       \
    "--algo grpo.so:group_size=2 --reward \"$RLHF_TEST_PLUGINS/even_judge.so\" --prompts "         \
    "prompts.txt --set batch.size=4 --set sampling.max_new_tokens=4 --set log.samples=0 "
    assert_int_equal(e2e_run(t, GRPO "--policy p --phases 2 --out whole"), 0);
    assert_int_equal(e2e_run(t, GRPO "--policy p --phases 1 --out r"), 0);
    assert_int_equal(e2e_run(t, GRPO "--policy p --set policy.adapter.rank=2 --phases 2 --out "
                                     "lora"),
                     0);
    assert_int_equal(e2e_run(t, GRPO "--policy p --set policy.adapter.rank=2 --phases 1 --out l"),
                     0);
    assert_int_equal(
        e2e_shell(t, "mkdir away && mv p prompts.txt away && cp -r away/p other && " FLIP(
                         "other") " && head -2 away/prompts.txt >less.txt"),
        0);
    for (const char *const *run = (const char *const[]){"r", "l", NULL}; *run; run++) {
        assert_int_equal(e2e_run(t, "--resume %s --phases 2", *run), 2);
        assert_int_equal(
            e2e_run(t, "--resume %s --phases 2 --prompts away/prompts.txt --policy other", *run),
            2);
        e2e_says(t, **run == 'r' ? "policy.path (the reference)" : "has changed since the adapter");
        assert_int_equal(
            e2e_run(t, "--resume %s --phases 2 --prompts less.txt --policy away/p", *run), 2);
        e2e_says(t, "has changed: prompts.path ");
        if (e2e_run(t, "--resume %s --phases 2 --prompts away/prompts.txt --policy away/p", *run))
            fail_msg("%s", t->out);
    }
    e2e_same_tree(t, "whole/checkpoints/000002/state", "r/checkpoints/000002/state");
    // The manifest has the new paths. The old paths are not kept, because the contents are equal.
    assert_int_equal(e2e_shell(t, "grep -q 'away/prompts.txt' r/manifest.json && "
                                  "grep -q 'away/p\"' r/manifest.json && "
                                  "! grep -q '\"earlier\"' r/manifest.json"),
                     0);
    assert_int_equal(e2e_shell(t, "cmp lora/checkpoints/000002/adapter_model.safetensors "
                                  "l/checkpoints/000002/adapter_model.safetensors"),
                     0);
    // If an input is given that the run does not read, it is refused.
    assert_int_equal(e2e_run(t, "--algo sft.so --data texts.jsonl --policy away/p --set "
                                "batch.size=4 --phases 1 --out s"),
                     0);
    assert_int_equal(e2e_run(t, "--resume s --phases 2 --policy other"), 2);
    e2e_says(t, "another policy.path has no effect: a resumed run does not read it");
    assert_int_equal(e2e_shell(t, "mv texts.jsonl away"), 0);
    assert_int_equal(e2e_run(t, "--resume s --phases 2 --data away/texts.jsonl"), 0);
}

// verify finds the base of an adapter where it lies now, although the checkpoints name the old
// place. The checkpoint of phase 1 is no longer there.
static void verify_with_a_moved_base(void **state) {
    struct e2e *t = *state;
    expect_ok(t, e2e_run(t, "--algo grpo.so:group_size=2 --reward 'format.so:pattern=[a-p]' "
                            "--prompts prompts.txt --policy p --set policy.adapter.rank=2 --set "
                            "batch.size=4 --set sampling.max_new_tokens=4 --set log.samples=0 "
                            "--set checkpoint.every=1 --set checkpoint.keep=1 --phases 3 --out v"));
    assert_int_equal(e2e_shell(t, "test ! -e v/checkpoints/000001 && mkdir away && mv p away && "
                                  "cp -r away/p other && " FLIP("other")),
                     0);
#define VERIFY "verify v --all --set policy.path="
    assert_int_equal(e2e_run(t, VERIFY "nowhere"), 2);
    e2e_says(t, "verify: policy.path: 'nowhere' does not exist; name where that of the run lies");
    assert_int_equal(e2e_run(t, VERIFY "other"), 2);
    e2e_says(t, "v read another policy.path (the reference): its sha256 was ");
    expect_ok(t, e2e_run(t, VERIFY "away/p"));
    e2e_says(t, "3 of 3 phases are equal to the bit");
    expect_ok(t, e2e_run(t, "verify v --phase 3 --set policy.path=away/p"));
    // Another path in a checkpoint is still found.
    assert_int_equal(e2e_shell(t, "sed -i 's|/p\"|/q\"|' v/checkpoints/latest/state/base.json"), 0);
    assert_int_equal(e2e_run(t, VERIFY "away/p"), 1);
    e2e_says(t, "state/base.json");
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, e2e_teardown)
    const struct CMUnitTest tests[] = {
        T(rows_of_a_file),
        T(prompts),
        T(models),
        T(a_reference_of_its_own),
        T(what_the_checkpoint_holds_may_change),
        T(moved_inputs),
        T(verify_with_a_moved_base),
    };
    return cmocka_run_group_tests_name("e2e_inputs", tests, NULL, NULL);
}
