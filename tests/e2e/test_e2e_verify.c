// test_e2e_verify.c: `rlhf-host verify`. Runs of several algorithms are recomputed with another
// instruction set, and the results, including rewards, are equal to the bit. Also tests that edits
// are found and named, receipts, and bad input.
#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP                                                                                       \
    " --set run.phases=3 --set log.level=error --set log.progress=off --set compute.backend=cpu "  \
    "--policy policy "
#define EVERY " --set checkpoint.every=1 --set checkpoint.keep=0 "
#define RL                                                                                         \
    " --prompts prompts.txt --set batch.size=8 --set sampling.max_new_tokens=6 "                   \
    "--set log.rollouts=true" KEEP
#define FORM " --reward 'format.so:pattern=[a-p]' "

// ---- the runs ----

static const struct {
    const char *name, *args;
} runs[] = {
    {"ppo", "--algo ppo.so --set compute.dtype=f32" FORM RL EVERY},
    {"critic", "--algo ppo.so --set value.critic=separate --set compute.dtype=bf16 "
               "--set compute.arithmetic=v1" FORM RL},
    {"grpo", "--algo grpo.so:group_size=4 --set compute.dtype=bf16 --set compute.arithmetic=v1 "
             "--set data.eval_path=prompts.txt "
             "--set data.eval_every=2" FORM RL EVERY},
    {"lora", "--algo grpo.so:group_size=4 --set policy.adapter.rank=2 "
             "--set compute.dtype=f32 --set optim.kind=adamw" FORM RL EVERY},
    {"ahead", "--algo ppo.so --set rollout.ahead=1 --set compute.dtype=f32" FORM RL
              " --set checkpoint.every=2 --set checkpoint.keep=0"},
    {"sft", "--algo sft.so --data texts.jsonl --set optim.kind=muon --set batch.size=4 "
            "--set compute.dtype=f32" KEEP EVERY},
};
enum { N_RUNS = sizeof runs / sizeof *runs };

static int setup(void **state) {
    if (e2e_setup(state) != 0) return -1;
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "\"$HOST\" --algo sft.so --data texts.jsonl --policy model "
                                  "--set policy.init=random --phases 1 --out s --threads 1 && "
                                  "cp -rL s/checkpoints/latest policy"),
                     0);
    for (int i = 0; i < N_RUNS; i++) {
        const int status =
            e2e_shell(t, "\"$HOST\" --threads 1 --out %s %s", runs[i].name, runs[i].args);
        if (status) fail_msg("%s: exit %d\n%s", runs[i].name, status, t->out);
    }
    return 0;
}

static void expect(struct e2e *t, int status, int wanted) {
    if (status != wanted) fail_msg("exit status %d, not %d:\n%s", status, wanted, t->out);
}

// ---- equal runs ----

// Verifies with another instruction set and another number of threads. Level amx has its own
// arithmetic in bf16, so these runs ask for v1.
static void all_phases_are_equal_on_another_machine(void **state) {
    struct e2e *t = *state;
    for (int i = 0; i < N_RUNS; i++) {
        expect(
            t,
            e2e_shell(t, "RLHF_CPU_ISA=avx2 \"$HOST\" verify %s --all --threads 2", runs[i].name),
            0);
        e2e_says(t, "files: as the chain says");
        e2e_says(t, "phase 1: equal to the bit\nphase 2: equal to the bit\nphase 3: equal");
        e2e_says(t, "3 of 3 phases are equal to the bit");
    }
}

// The head of the hash chain does not depend on threads, checkpoints, logs, a stop, or a request
// for v1.
static void the_head_belongs_to_the_settings(void **state) {
    struct e2e *t = *state;
    expect(t,
           e2e_shell(t, "\"$HOST\" --threads 2 --out other --algo ppo.so "
                        "--set compute.dtype=f32" FORM RL
                        "--set log.rollouts=false --set run.stop_after=2 "
                        "--set compute.arithmetic=v1 && "
                        "RLHF_CPU_ISA=avx2 \"$HOST\" --resume other --threads 1"),
           0);
    expect(t,
           e2e_shell(t, "for r in ppo other; do grep -o '\"head\": \"[0-9a-f]*\"' "
                        "$r/chain.jsonl > $r.heads; done; cmp ppo.heads other.heads && "
                        "[ $(wc -l < ppo.heads) = 4 ]"),
           0);
    expect(t, e2e_run(t, "verify other --all"), 0);
    e2e_says(t, "3 of 3 phases are equal to the bit (f32, arithmetic v1)");
}

static void a_phase_begins_at_the_checkpoint_before_it(void **state) {
    struct e2e *t = *state;
    expect(t, e2e_run(t, "verify ppo --phase 2"), 0);
    e2e_says(t, "1 of 1 phases are equal");
    assert_null(strstr(t->out, "phase 1"));
    expect(t, e2e_run(t, "verify critic --phase 2"), 0); // only the last checkpoint is there
    e2e_says(t, "phase 2 begins at phase 0, so all phases from there on are recomputed");
    e2e_says(t, "2 of 2 phases are equal");
    expect(t, e2e_run(t, "verify ppo"), 0);
    e2e_says(t, "nothing was recomputed; --all or --phase A..B does");
}

static void nothing_is_written_to_the_run(void **state) {
    struct e2e *t = *state;
    expect(t, e2e_shell(t, "cp -r sft before && \"$HOST\" verify sft --all --out r.json"), 0);
    e2e_same_tree(t, "sft", "before");
}

// ---- the chain ----

#define CHAIN "python3 \"$RLHF_SOURCE_DIR/tests/e2e/chain.py\" "

// A program that was written from docs/verifying.md computes the same digests.
static void digests_are_those_of_the_page(void **state) {
    struct e2e *t = *state;
    for (int i = 0; i < N_RUNS; i++) {
        if (strcmp(runs[i].name, "sft") == 0) continue; // this run keeps no rows
        expect(t, e2e_shell(t, CHAIN "digests %s", runs[i].name), 0);
        e2e_says(t, ": 3 phases");
    }
}

// An author can make all heads and seals consistent again, but the rows still do not follow from
// the settings.
static void a_forged_chain_is_found_by_recomputing(void **state) {
    struct e2e *t = *state;
    expect(t, e2e_shell(t, "rm -rf x && cp -r sft x && " CHAIN "forge x 2 && \"$HOST\" verify x"),
           0);
    expect(t, e2e_run(t, "verify x --phase 2..3 --out d.json"), 1);
    e2e_says(t, "files: as the chain says\nphase 2: differs\n"
                "  phase 2: chain.jsonl: digest of rows: 000000");
    e2e_says(t, "phase 3: equal to the bit\n1 of 2 phases are equal");
    expect(t, e2e_run(t, "verify --receipt d.json x"), 0);
    e2e_says(t, "d.json is unchanged and belongs to the run: the run differs\n");
    expect(t, e2e_shell(t, "grep '\"equal\": false' d.json && grep 'class=\"no\">' d.html"), 0);
}

// ---- rewards on trust ----

static void rewards_of_others_are_taken_on_trust(void **state) {
    struct e2e *t = *state;
    expect(t,
           e2e_shell(t, "\"$HOST\" --threads 1 --out judged --algo ppo.so --reward "
                        "\"$RLHF_TEST_PLUGINS/even_judge.so\" --set compute.dtype=f32" RL),
           0);
    // Verifying does not open the reward, so the reward may be missing.
    expect(t, e2e_run(t, "verify judged --all"), 0);
    e2e_says(t, "3 of 3 phases are equal to the bit");
    e2e_says(t, "rewards of 3 phases were taken on trust: ");
    expect(t,
           e2e_shell(t, "rm -rf x && cp -r judged x && sed -i "
                        "'/\"phase\": 2, \"row\": 3,/s/\"score\": [-0-9.e]*/\"score\": 7/' "
                        "x/rollouts.jsonl && \"$HOST\" verify x --phase 2"),
           1);
    e2e_says(t, "phase 2: rollouts.jsonl: its rewards are not those of the chain");
    e2e_says(t, "phase 2: differs");
    expect(t, e2e_shell(t, "rm x/rollouts.jsonl && \"$HOST\" verify x --phase 2"), 2);
    e2e_says(t, "does not promise the same scores each time, and x has not recorded them");
}

// The record lacks the scores of groups that algo.dynamic_sampling replaced.
static void replaced_groups_are_not_taken_on_trust(void **state) {
    struct e2e *t = *state;
    expect(t,
           e2e_shell(t, "\"$HOST\" --threads 1 --out rounds --algo grpo.so:group_size=4 --set "
                        "algo.dynamic_sampling=true --set compute.dtype=f32 --reward "
                        "'format.so:pattern=[a-d]' --judge length.so:max_len=9" RL EVERY
                        "&& grep '\"sampling/fresh_rounds\": [1-9]' rounds/metrics.jsonl"),
           0);
    expect(t, e2e_run(t, "verify rounds --all"), 2);
    e2e_says(t, "cannot be recomputed: algo.dynamic_sampling replaced groups");
    expect(t, e2e_run(t, "verify rounds"), 0);
}

// The checkpoints contain the state of this reward. `verify` does not open the reward, so it takes
// the reward's state on trust as well. Only the chain's digests still cover the state.
static void the_state_of_such_rewards_is_taken_on_trust(void **state) {
    struct e2e *t = *state;
    expect(t,
           e2e_shell(
               t,
               "\"$HOST\" --threads 1 --out kept --algo ppo.so --reward "
               "\"$RLHF_TEST_PLUGINS/../plugins/sample.so\":gain=0 --set compute.dtype=f32" RL EVERY
               "&& ls kept/checkpoints/000003/state/reward_0.bin"),
           0);
    expect(t, e2e_run(t, "verify kept --all"), 0);
    e2e_says(t, "3 of 3 phases are equal to the bit");
    e2e_says(t, "rewards of 3 phases were taken on trust: org.example.sample");
    expect(t,
           e2e_shell(t,
                     "rm -rf x && cp -r kept x && echo >> x/checkpoints/000002/state/reward_0.bin "
                     "&& \"$HOST\" verify x --all"),
           1);
    e2e_says(t, "checkpoints/000002/state/reward_0.bin");
}

// ---- edits ----

// Changes a copy of the run by a shell command, and verifies the copy with these flags.
static void finds_with(struct e2e *t, const char *flags, const char *run, const char *change,
                       const char *what) {
    assert_int_equal(e2e_shell(t, "rm -rf x && cp -r %s x && cd x && %s", run, change), 0);
    expect(t, e2e_shell(t, "\"$HOST\" verify x %s", flags), 1);
    e2e_says(t, what);
}

static void finds(struct e2e *t, const char *run, const char *change, const char *what) {
    finds_with(t, "--all", run, change, what);
}

static void edits_are_named(void **state) {
    struct e2e *t = *state;
    finds(t, "ppo",
          "sed -i '2s/\"objective.loss\": [-0-9.e]*/\"objective\\/loss\": 0.5/' metrics.jsonl",
          "phase 2: metrics.jsonl: objective/loss: 0.5, not ");
    finds(t, "ppo",
          "sed -i '2s/\"time.training\": [-0-9.e]*/\"time\\/training\": 0.5/' metrics.jsonl",
          "phase 2: metrics.jsonl: its times or rates are not those of the chain");
    finds(t, "ppo", "sed -i 's/\"lr\": 0.0002/\"lr\": 0.0003/' config.json",
          "phase 0: config.json: optim.lr: 0.0003, not 0.0002");
    e2e_says(t, "nothing is recomputed: the settings are not those of the run");
    finds(t, "ppo", "sed -i 's/\"threads\": 1/\"threads\": 2/' config.json",
          "config.json: run.threads: 2, not 1");
    finds(t, "ppo",
          "sed -i '/\"phase\": 2, \"row\": 3,/s/\"ids\": \\[[0-9]*/\"ids\": [7/' rollouts.jsonl",
          "phase 2: rollouts.jsonl: row 3, ids[0]: 7, not ");
    finds(t, "ppo",
          "sed -i '/\"phase\": 2, \"epoch\": 1/s/\"loss\": [-0-9.e]*/\"loss\": 7/' rollouts.jsonl",
          "phase 2: rollouts.jsonl: step 4, loss: 7, not ");
    finds(t, "ppo", "sed -i 's/\"rows\": \"./\"rows\": \"z/' chain.jsonl",
          "phase 1: chain.jsonl: line 3: its head does not follow");
    finds(t, "ppo", "sed -i '5d' chain.jsonl", "chain.jsonl: line 5: lines before it are missing");
    finds(t, "critic", "rm checkpoints/000003/state/critic.safetensors",
          "checkpoints/000003/state/critic.safetensors: the file is missing");
}

// The program would not write these texts, although they have the same numbers.
static void edits_of_text_are_named(void **state) {
    struct e2e *t = *state;
    finds_with(t, "", "ppo", "sed -i '0,/e-0/s//E-0/' rollouts.jsonl", ": rollouts.jsonl: line ");
    e2e_says(t, ": the line was edited");
    finds_with(t, "", "ppo", "sed -i 's/\"lr\": 0.0002,/\"lr\": 0.0002 ,/' config.json",
               "phase 0: config.json: its text was edited");
    finds_with(t, "", "ppo", "sed -i 's/\"threads\": 1/\"threads\": 2/' chain.jsonl",
               "its seal does not belong to the lines up to it: one was edited");
    finds_with(t, "", "ppo", "sed -i '$s/: {/:  {/' chain.jsonl", "phase 3: chain.jsonl: line ");
    e2e_says(t, ": the line was edited");
}

// Rows can be missing only if the run did not write them.
static void missing_rows_are_named(void **state) {
    struct e2e *t = *state;
    finds_with(t, "", "ppo", "sed -i '/\"phase\": 2, \"row\"/d' rollouts.jsonl",
               "phase 2: rollouts.jsonl: the phase is missing");
    finds_with(t, "", "ppo", "sed -i '/\"phase\": [23],/d' rollouts.jsonl",
               "phase 3: rollouts.jsonl: the phase is missing");
    finds_with(t, "", "ppo", "sed -i '/\"phase\": 1, \"row\": 3,/d' rollouts.jsonl",
               "phase 1: rollouts.jsonl: its rows are not those of the chain");
    expect(t,
           e2e_shell(t, "\"$HOST\" --threads 1 --out later --algo ppo.so --set "
                        "compute.dtype=f32" FORM RL "--set log.rollouts=false --set "
                        "run.stop_after=2 && \"$HOST\" --resume later --set log.rollouts=true "
                        "--threads 1 && \"$HOST\" verify later"),
           0);
    e2e_says(t, "files: as the chain says");
}

// The last element of the file becomes 0.
static void an_element_is_named_with_its_values(void **state) {
    struct e2e *t = *state;
    finds_with(t, "--phase 3", "ppo",
               "f=checkpoints/000003/model.safetensors && head -c -4 $f > new && printf "
               "'\\0\\0\\0\\0' >> new && mv new $f",
               "phase 3: checkpoints/000003/model.safetensors: transformer.ln_f.bias[");
    e2e_says(t, "]: 0, not ");
}

// A checkpoint is replaced by that of another phase.
static void a_forged_run_is_found(void **state) {
    struct e2e *t = *state;
    finds(t, "ppo", "cp checkpoints/000003/model.safetensors checkpoints/000002/",
          "phase 2: checkpoints/000002/model.safetensors: sha256: ");
    e2e_says(t, "phase 2: checkpoints/000002/model.safetensors: transformer.");
    e2e_says(t, "phase 3: differs"); // it begins at the forged checkpoint
    e2e_says(t, "1 of 3 phases are equal");
}

// ---- receipts ----

static void an_edited_receipt_is_refused(void **state) {
    struct e2e *t = *state;
    expect(t, e2e_run(t, "verify ppo --phase 3 --out r.json"), 0);
    expect(t, e2e_run(t, "verify --receipt r.json ppo"), 0);
    e2e_says(t, "r.json is unchanged and belongs to the run: the run has 1 of 3 phases that were "
                "recomputed and are equal to the bit\n");
    expect(t, e2e_run(t, "verify ppo --out none.json"), 0);
    expect(t, e2e_run(t, "verify --receipt none.json ppo"), 0);
    e2e_says(t, "the run has the files of its hash chain; no phase was recomputed\n");
    expect(t, e2e_shell(t, "grep '\"equal\": null' none.json; grep '<h1>' none.html"), 0);
    e2e_says(t, "unknown\">has the files of its hash chain");
    expect(t, e2e_run(t, "verify ppo --receipt r.html"), 0);
    expect(t, e2e_run(t, "verify grpo --receipt r.json"), 2);
    e2e_says(t, "r.json is the receipt of another run: its begin is ");
    expect(t,
           e2e_shell(t, "sed 's/\"recomputed\": 1/\"recomputed\": 3/' r.json > e.json; "
                        "\"$HOST\" verify --receipt e.json"),
           2);
    e2e_says(t, "e.json was edited: its content does not fit its sha256 ");
    expect(t,
           e2e_shell(t, "sed 's/1 of the run/3 of the run/' r.html > e.html; "
                        "! cmp -s e.html r.html && \"$HOST\" verify --receipt e.html"),
           2);
    e2e_says(t, "e.html was edited");
    expect(t, e2e_shell(t, "\"$HOST\" verify --receipt ppo/config.json"), 2);
    e2e_says(t, "ppo/config.json is not a receipt");
    expect(t, e2e_run(t, "verify ppo --out prompts.json.txt"), 2);
    e2e_says(t, "give a name that ends in .json");
    expect(t, e2e_shell(t, "echo '{}' > own.json; \"$HOST\" verify ppo --out own.json"), 2);
    e2e_says(t, "would overwrite own.json, which is not a receipt");
}

// ---- bad input ----

static void refuses(struct e2e *t, const char *change, const char *args, const char *what) {
    assert_int_equal(e2e_shell(t, "rm -rf x && cp -r ppo x && cd x && %s", change), 0);
    expect(t, e2e_shell(t, "\"$HOST\" verify x %s 2>&1 >/dev/null", args), 2);
    e2e_says(t, what);
    const char *end = strchr(t->out, '\n');
    if (!end || end[1]) fail_msg("more than one sentence:\n%s", t->out);
}

static void bad_input_is_one_sentence(void **state) {
    struct e2e *t = *state;
    refuses(t, "rm chain.jsonl", "--all", "x has no hash chain (chain.jsonl)");
#define NAME_VERSION(v)                                                                            \
    "sed -i 's/\"version\": \"[^\"]*\"}, \"head/\"version\": \"" v "\"}, \"head/' chain.jsonl"
    refuses(t, NAME_VERSION("0.9.7") " && " CHAIN "forge . 999", "",
            "x was made by version 0.9.7, and this is version 1.");
    refuses(t, NAME_VERSION(""), "", "x/chain.jsonl was edited: line 1: ");
#undef NAME_VERSION
    refuses(t, "true", "--phase 9", "--phase is 9, but the run has 3 phases");
    refuses(t, "true", "--all --phase 2", "give --all or --phase, not both");
    refuses(t, "rm -r checkpoints/00000[12] && mv ../policy ../gone", "--phase 2", "policy");
    assert_int_equal(e2e_shell(t, "mv gone policy"), 0);
    refuses(t, "echo '{' >> chain.jsonl", "--all", "chain.jsonl:9:");
    refuses(t, "sed -i 2q chain.jsonl", "", "it ended before its first phase was done");
}

static void another_input_is_refused(void **state) {
    struct e2e *t = *state;
    expect(t,
           e2e_shell(t, "cp prompts.txt p2.txt; echo More >> p2.txt; \"$HOST\" verify ppo --all "
                        "--set prompts.path=p2.txt"),
           2);
    e2e_says(t, "ppo read another prompts.path: its sha256 was ");
    expect(t,
           e2e_shell(t, "cp prompts.txt p3.txt; \"$HOST\" verify ppo --phase 2 "
                        "--set prompts.path=p3.txt"),
           0);
}

static void another_version_of_a_plugin_is_refused(void **state) {
    struct e2e *t = *state;
    expect(t,
           e2e_shell(t, "cp \"$RLHF_TEST_PLUGINS/../plugins/function.so\" own.so && "
                        "\"$HOST\" --threads 1 --out own --algo ppo.so --reward ./own.so "
                        "--set compute.dtype=f32" RL EVERY),
           0);
    expect(t, e2e_run(t, "verify own --all --trust-run"), 0);
    e2e_says(t, "3 of 3 phases are equal to the bit");
    assert_null(strstr(t->out, "on trust"));
    expect(t,
           e2e_shell(t, "sed 's/1[.]2[.]3/1.2.4/' own.so > new.so && mv new.so own.so && "
                        "\"$HOST\" verify own --all --trust-run"),
           2);
    e2e_says(t, "own was computed with reward org.example.sample 1.2.3, and here it is 1.2.4: "
                "install the version of the run");
}

// config.json keeps only the newest settings.
static void phases_before_other_settings_are_refused(void **state) {
    struct e2e *t = *state;
    expect(t,
           e2e_shell(t, "rm -rf x && cp -r ppo x && \"$HOST\" --resume x --set run.phases=4 "
                        "--threads 1"),
           0);
    expect(t, e2e_run(t, "verify x --phase 4"), 0);
    expect(t, e2e_run(t, "verify x --phase 2"), 2);
    e2e_says(t, "phase 2 cannot be recomputed: after phase 3 the run was resumed with other "
                "settings, inputs or plugins");
    // A part of the phases does not satisfy --all.
    expect(t, e2e_run(t, "verify x --all --out part.json"), 1);
    e2e_says(t, "phases 1 to 3 cannot be recomputed: the run was resumed after them");
    e2e_says(t, "1 of 1 phases are equal");
    e2e_says(t, "not verified: 3 phases");
    expect(t, e2e_shell(t, "cat part.json part.html"), 0);
    e2e_says(t, "\"equal\": null");
    e2e_says(t, "\"asked\": [\n      1,\n      4\n    ]");
    e2e_says(t, "Not verified: phases 1 to 3 cannot be recomputed");
    expect(t, e2e_run(t, "verify --receipt part.json x"), 0);
    e2e_says(t, "has 1 of 4 phases that were recomputed");
    expect(t, e2e_run(t, "verify x --all --json"), 1);
    e2e_says(t, "\"not_recomputed\": \"phases 1 to 3 cannot be recomputed: the run was resumed");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_phases_are_equal_on_another_machine),
        cmocka_unit_test(the_head_belongs_to_the_settings),
        cmocka_unit_test(a_phase_begins_at_the_checkpoint_before_it),
        cmocka_unit_test(nothing_is_written_to_the_run),
        cmocka_unit_test(digests_are_those_of_the_page),
        cmocka_unit_test(a_forged_chain_is_found_by_recomputing),
        cmocka_unit_test(rewards_of_others_are_taken_on_trust),
        cmocka_unit_test(replaced_groups_are_not_taken_on_trust),
        cmocka_unit_test(the_state_of_such_rewards_is_taken_on_trust),
        cmocka_unit_test(edits_are_named),
        cmocka_unit_test(edits_of_text_are_named),
        cmocka_unit_test(missing_rows_are_named),
        cmocka_unit_test(an_element_is_named_with_its_values),
        cmocka_unit_test(a_forged_run_is_found),
        cmocka_unit_test(an_edited_receipt_is_refused),
        cmocka_unit_test(bad_input_is_one_sentence),
        cmocka_unit_test(another_input_is_refused),
        cmocka_unit_test(another_version_of_a_plugin_is_refused),
        cmocka_unit_test(phases_before_other_settings_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, e2e_teardown);
}
