// test_e2e_verify_limits.c: `rlhf-host verify --backend reference`: phases of all algorithms are
// recomputed with other kernels and compared within limits, and planted faults are found.
#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVEN "\"$RLHF_TEST_PLUGINS/even_judge.so\""
#define KEEP_ALL                                                                                   \
    " --set checkpoint.every=1 --set checkpoint.keep=0 --set log.level=error --set "               \
    "log.progress=off --set compute.backend=cpu --policy policy "
#define KEEP KEEP_ALL "--set run.phases=2 "
#define RL                                                                                         \
    " --reward " EVEN " --prompts prompts.txt --set batch.size=8 --set log.rollouts=true "         \
    "--set sampling.max_new_tokens=6" KEEP
#define LIMITS " --backend reference "
#define DATA   " --set batch.size=4" KEEP

// ---- the runs ----

static const struct {
    const char *name, *args;
} runs[] = {
    {"ppo", "--algo ppo.so --set compute.dtype=f32" RL},
    {"critic", "--algo ppo.so --set value.critic=separate --set compute.dtype=f32" RL},
    {"pp", "--preset reinforce-pp --set compute.dtype=f32" RL},
    {"grpo", "--algo grpo.so:group_size=4 --set compute.dtype=f32" RL},
    {"lora", "--algo grpo.so:group_size=4 --set policy.adapter.rank=2 "
             "--set compute.dtype=f32" RL},
    {"iterative", "--algo grpo_iterative.so:group_size=4,iteration_phases=1 "
                  "--set compute.dtype=f32" RL},
    {"rloo", "--algo rloo.so:group_size=4 --set compute.dtype=bf16" RL},
    {"sft", "--algo sft.so --data texts.jsonl --set optim.kind=muon "
            "--set compute.dtype=f32" DATA},
    {"classify", "--algo classify.so --data labeled.jsonl --set compute.dtype=f32" DATA},
    {"dpo", "--algo dpo.so --data pairs.jsonl --set compute.dtype=f32" DATA},
    {"dpolora", "--algo dpo.so --data pairs.jsonl --set policy.adapter.rank=2 "
                "--set compute.dtype=bf16" DATA},
    {"kto", "--algo kto.so --data kto.jsonl --set compute.dtype=f32" DATA},
    {"rm", "--algo bradley_terry.so --data pairs.jsonl --set compute.dtype=f32" DATA},
    {"opd", "--algo opd.so --set models.teacher=sft/checkpoints/000002 "
            "--set compute.dtype=f32" RL},
};
enum { N_RUNS = sizeof runs / sizeof *runs };

static void write_rows(const struct e2e *t) {
    static const char *const words[] = {"good", "bad", "long", "short", "the end", "a film"};
    char pairs[4096] = "", kto[4096] = "";
    for (int i = 0; i < 8; i++) {
        const char *a = words[i % 6], *b = words[(i + 1 + i / 6) % 6];
        snprintf(pairs + strlen(pairs), sizeof pairs - strlen(pairs),
                 "{\"prompt\": \"It was\", \"chosen\": \" %s\", \"rejected\": \" %s\"}\n", a, b);
        snprintf(kto + strlen(kto), sizeof kto - strlen(kto),
                 "{\"prompt\": \"It was\", \"completion\": \" %s\", \"label\": %s}\n", a,
                 i % 2 ? "true" : "false");
    }
    e2e_write(t, "pairs.jsonl", pairs);
    e2e_write(t, "kto.jsonl", kto);
}

static int setup(void **state) {
    if (e2e_setup(state) != 0) return -1;
    struct e2e *t = *state;
    write_rows(t);
    assert_int_equal(e2e_shell(t, "\"$HOST\" --algo sft.so --data texts.jsonl --policy model "
                                  "--set policy.init=random --set compute.dtype=f32 --phases 1 "
                                  "--out s --threads 1 && cp -rL s/checkpoints/latest policy"),
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

static void the_reference_backend_agrees(void **state) {
    struct e2e *t = *state;
    for (int i = 0; i < N_RUNS; i++) {
        expect(t, e2e_run(t, "verify %s --all" LIMITS, runs[i].name), 0);
        e2e_says(t, "phase 1: equal");
        e2e_says(t, "phase 2: equal within the limits");
        e2e_says(t, "2 of 2 phases are equal within the limits");
        e2e_says(t, "update of ");
        e2e_says(t, "gradient norm");
    }
}

// A run of the reference backend has its bits.
static void the_same_backend_is_equal_to_the_bit(void **state) {
    struct e2e *t = *state;
    expect(t,
           e2e_shell(t, "\"$HOST\" --threads 1 --out same --algo sft.so --data texts.jsonl " DATA
                        "--set compute.dtype=f32 --set compute.backend=reference"),
           0);
    expect(t, e2e_run(t, "verify same --all --threads 2" LIMITS), 0);
    e2e_says(t, "phase 1: equal to the bit (f32, same arithmetic)");
    e2e_says(t, "phase 2: equal to the bit (f32, same arithmetic)");
}

// Recomputing does not open the reward, whose file no longer exists.
static void no_reward_is_opened_and_nothing_is_written(void **state) {
    struct e2e *t = *state;
    expect(t,
           e2e_shell(t, "cp " EVEN " own.so && \"$HOST\" --threads 1 --out gone "
                        "--algo grpo.so:group_size=4 --reward ./own.so --prompts prompts.txt "
                        "--set batch.size=8 --set log.rollouts=true "
                        "--set sampling.max_new_tokens=6 --set compute.dtype=f32" KEEP
                        "&& rm own.so && cp -r gone before"),
           0);
    expect(t, e2e_run(t, "verify gone --phase 2" LIMITS), 0);
    e2e_says(t, "phase 2: equal");
    e2e_says(t, "rewards of 1 phases were taken on trust: ");
    assert_null(strstr(t->out, "phase 1:"));
    e2e_same_tree(t, "gone", "before");
}

// All responses have the same score. The KL, and with it the gradient of the run, is exactly 0, but
// the reference backend's log-probs differ from those of sampling by rounding errors.
static void phases_with_one_score_are_equal(void **state) {
    struct e2e *t = *state;
    expect(t,
           e2e_shell(t, "\"$HOST\" --threads 1 --out flat --algo ppo.so --reward "
                        "length.so:max_len=9,weight=0.3 --prompts prompts.txt --set batch.size=12 "
                        "--set log.rollouts=true --set sampling.max_new_tokens=8 "
                        "--set sampling.stop_at_eos=false --set compute.dtype=f32" KEEP
                        "&& grep '\"optim/flat_phases\": 2' flat/metrics.jsonl"),
           0);
    expect(t, e2e_run(t, "verify flat --all"), 0);
    e2e_says(t, "phase 2: equal to the bit");
    expect(t, e2e_run(t, "verify flat --all" LIMITS), 0);
    e2e_says(t, "phase 2: equal within the limits (f32; rounding alone moves ");
}

// ---- faults ----

// Flips a bit of the file's byte `at`, counted from the first byte of the tensors.
static void flip(const struct e2e *t, const char *name, long at, int bit) {
    char path[600];
    uint64_t header = 0;
    snprintf(path, sizeof path, "%s/%s", t->dir, name);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fread(&header, sizeof header, 1, f), 1); // x86-64 is little-endian, too
    at += 8 + (long)header;
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    const int byte = fgetc(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    fputc(byte ^ 1 << bit, f);
    assert_int_equal(fclose(f), 0);
}

// Copies the run and changes the copy by a shell command (NULL = none).
static void copy(struct e2e *t, const char *run, const char *change) {
    assert_int_equal(e2e_shell(t, "rm -rf x y && cp -r %s x && cp -r x y", run), 0);
    if (!change) return;
    assert_int_equal(e2e_shell(t, "%s", change), 0);
    assert_int_not_equal(e2e_shell(t, "diff -r x y >/dev/null"), 0); // the change was made
}

static void finds(struct e2e *t, const char *args, const char *what) {
    expect(t, e2e_run(t, "verify x %s" LIMITS, args), 1);
    e2e_says(t, "phase 2: differs");
    e2e_says(t, "DIFFERS");
    e2e_says(t, what);
}

static void a_flipped_bit_of_a_weight_is_found(void **state) {
    struct e2e *t = *state;
    static const char *const all[] = {"grpo", "sft", "dpo"};
    for (int i = 0; i < 3; i++) {
        copy(t, all[i], NULL);
        flip(t, "x/checkpoints/000002/model.safetensors", 2, 6); // a high bit of the mantissa
        finds(t, "--phase 2", "element of model.safetensors");
    }
    copy(t, "grpo", NULL);
    flip(t, "x/checkpoints/000002/model.safetensors", 0, 0); // the lowest bit
    expect(t, e2e_run(t, "verify x --phase 2" LIMITS), 1);
    e2e_says(t, "phase 2: checkpoints/000002/model.safetensors: sha256: ");
    e2e_says(t, "phase 2: equal within the limits");
}

static void a_flipped_bit_of_a_moment_is_found(void **state) {
    struct e2e *t = *state;
    copy(t, "ppo", NULL);
    flip(t, "x/checkpoints/000002/state/optimizer.safetensors", 3, 5); // a bit of the exponent
    finds(t, "--phase 2", "element of state/optimizer.safetensors");
    copy(t, "lora", NULL);
    flip(t, "x/checkpoints/000002/adapter_model.safetensors", 3, 5);
    finds(t, "--phase 2", "element of adapter_model.safetensors");
}

// In a phase of this run, the ratio of a token is so close to its bound that rounding decides
// whether it is clipped. The limits are raised to what rounding does; larger differences are found.
static void limits_allow_what_rounding_does(void **state) {
    struct e2e *t = *state;
    expect(t,
           e2e_shell(t, "\"$HOST\" --threads 1 --out kink --seed 7 --algo "
                        "grpo.so:group_size=4,clip_range=1e-4,epochs=2 --reward " EVEN
                        " --prompts prompts.txt --set batch.size=16 --set optim.lr=1e-6 "
                        "--set log.rollouts=true --set sampling.max_new_tokens=16 --phases 3 "
                        "--set compute.dtype=f32 --set compute.backend=cpu --policy policy "
                        "--set checkpoint.every=1 --set checkpoint.keep=0 --set log.progress=off"),
           0);
    expect(t, e2e_run(t, "verify kink --all" LIMITS), 0);
    e2e_says(t, "phase 2: equal within the limits (f32)\n");
    e2e_says(t, "phase 3: equal within the limits (f32; rounding alone moves ");
    e2e_says(t, "policy/clipfrac_avg  limit raised");
    expect(t, e2e_run(t, "verify kink --phase 3 --json" LIMITS), 0);
    e2e_says(t, "\"limit_raised\": true");
    copy(t, "kink", NULL);
    flip(t, "x/checkpoints/000003/model.safetensors", 3, 2);
    expect(t, e2e_run(t, "verify x --phase 3" LIMITS), 1);
    e2e_says(t, "element of model.safetensors");
    copy(t, "kink",
         "sed -i '/\"phase\": 3/s/\\(\"policy.clipfrac_avg\": \\)[-0-9.e]*/\\10.5/' "
         "x/metrics.jsonl");
    expect(t, e2e_run(t, "verify x --phase 3" LIMITS), 1);
    e2e_says(t, "policy/clipfrac_avg  DIFFERS");
}

static void a_changed_reward_is_found(void **state) {
    struct e2e *t = *state;
    static const char *const all[] = {"ppo", "grpo", "rloo", "pp"};
    for (int i = 0; i < 4; i++) {
        copy(t, all[i],
             "sed -i 's/\\(\"phase\": 2, \"row\": 3,.*\"score\": \\)[-0-9.e]*/\\13.25/' "
             "x/rollouts.jsonl");
        finds(t, "--phase 2", "objective/scores");
        e2e_says(t, "update of model.safetensors");
    }
}

static void a_changed_log_prob_is_found(void **state) {
    struct e2e *t = *state;
    copy(t, "grpo",
         "sed -i 's/\\(\"phase\": 2, \"row\": 3,.*\"logp_sampled\": \\[\\)[-0-9.e]*/\\1-0.5/' "
         "x/rollouts.jsonl");
    finds(t, "--phase 2", "log-probs of sampling");
    e2e_says(t, "   0.0001  DIFFERS"); // the only line without a place that has this limit
}

static void a_changed_learning_rate_is_found(void **state) {
    struct e2e *t = *state;
    static const char *const all[] = {"grpo", "sft", "dpo", "lora"};
    for (int i = 0; i < 4; i++) {
        copy(t, all[i],
             "sed -i '/\"phase\": 2/s/\\(\"lr\": \\)[0-9.e-]*/\\10.000321/' x/metrics.jsonl");
        finds(t, "--phase 2", "lr  DIFFERS");
    }
    // The phase was computed with another learning rate.
    expect(t,
           e2e_shell(t, "\"$HOST\" --threads 1 --out fast --algo sft.so --data texts.jsonl "
                        "--set optim.kind=muon --set optim.lr=0.00011 --set optim.muon_lr=0.022 "
                        "--set compute.dtype=f32" DATA),
           0);
    copy(t, "sft",
         "for n in 1 2; do rm -r x/checkpoints/00000$n && "
         "cp -r fast/checkpoints/00000$n x/checkpoints; done");
    finds(t, "--phase 2", "update of model.safetensors");
}

static void a_changed_metric_is_found(void **state) {
    struct e2e *t = *state;
    copy(t, "grpo",
         "sed -i '/\"phase\": 2/s/\\(\"objective.kl\": \\)[-0-9.e]*/\\10.5/' x/metrics.jsonl");
    finds(t, "--all", "objective/kl  DIFFERS");
    e2e_says(t, "phase 1: equal");
    e2e_says(t, "1 of 2 phases are equal within the limits");
    copy(t, "kto",
         "sed -i '/\"phase\": 2/s/\\(\"objective.loss\": \\)[-0-9.e]*/\\10.7/' x/metrics.jsonl");
    finds(t, "--all", "loss");
}

// ---- what cannot be recomputed ----

static void what_is_missing_is_said(void **state) {
    struct e2e *t = *state;
    copy(t, "grpo", "sed -i '/^.\"phase\": 2,/d' x/rollouts.jsonl");
    expect(t, e2e_run(t, "verify x --all" LIMITS), 1);
    e2e_says(t, "phase 1: equal");
    e2e_says(t, "phase 2 cannot be recomputed: rollouts.jsonl lacks the responses, which "
                "log.rollouts=true");
    copy(t, "sft", "rm -r x/checkpoints/000001");
    expect(t, e2e_run(t, "verify x --all" LIMITS), 2);
    e2e_says(t, "phases 1 to 2 cannot be recomputed: checkpoints are missing: a phase needs those "
                "of its beginning and its end, which checkpoint.every=1");
    e2e_says(t, "verify: no phase can be recomputed\n");
    assert_int_equal(e2e_shell(t, "mv policy elsewhere"), 0);
    expect(t, e2e_run(t, "verify sft --all --out part.json" LIMITS), 1);
    e2e_says(t, "phase 1 cannot be recomputed: ");
    e2e_says(t, "phase 2: equal"); // the checkpoints suffice after the first phase
    e2e_says(t, "not verified: 1 phases");
    expect(t, e2e_shell(t, "mv elsewhere policy && \"$HOST\" verify --receipt part.json sft"), 0);
    e2e_says(t, "the run has 1 of 2 phases that were recomputed and are equal within the limits");
}

// The run lacks every third checkpoint, so 16 of its phases are left out, two at a time.
static void all_that_is_missing_is_said(void **state) {
    struct e2e *t = *state;
    expect(t,
           e2e_shell(t, "\"$HOST\" --threads 1 --out holes --algo sft.so --data texts.jsonl "
                        "--set batch.size=4 --phases 26" KEEP_ALL
                        "--set compute.dtype=f32 && for n in 03 06 09 12 15 18 21 24; "
                        "do rm -r holes/checkpoints/0000$n; done"),
           0);
    for (int json = 0; json < 2; json++) {
        expect(t, e2e_run(t, "verify holes --all%s" LIMITS, json ? " --json" : ""), 1);
        for (int p = 3; p <= 24; p += 3) {
            char what[80];
            snprintf(what, sizeof what, "phases %d to %d cannot be recomputed: checkpoints are", p,
                     p + 1);
            e2e_says(t, what);
        }
        e2e_says(t, json ? "checkpoint.keep=0 keep\"" : "not verified: 16 phases");
    }
}

static void bad_input_is_refused(void **state) {
    struct e2e *t = *state;
    expect(t, e2e_run(t, "verify grpo --phase 2..1" LIMITS), 2);
    expect(t, e2e_run(t, "verify grpo --phase 3" LIMITS), 2);
    e2e_says(t, "the run has 2 phases");
    copy(t, "grpo", "sed -i 's/\"prompt_length\": [0-9]*/\"prompt_length\": 99/' x/rollouts.jsonl");
    expect(t, e2e_run(t, "verify x --phase 2" LIMITS), 1);
    e2e_says(t, "row 0 of phase 2: \"prompt_length\" is missing or does not fit the run");
    copy(t, "grpo", "sed -i 's/.$//' x/rollouts.jsonl");
    expect(t, e2e_run(t, "verify x --phase 2" LIMITS), 2);
    e2e_says(t, "not valid JSON");
    expect(t,
           e2e_shell(t, "cp prompts.txt p2.txt; echo More >> p2.txt; \"$HOST\" verify grpo --all "
                        "--set prompts.path=p2.txt" LIMITS),
           2);
    e2e_says(t, "grpo read another prompts.path: its sha256 was ");
}

static void the_receipt_has_the_comparisons(void **state) {
    struct e2e *t = *state;
    json_error_t why;
    expect(t, e2e_run(t, "verify grpo --all --json" LIMITS), 0);
    json_t *v = json_loads(t->out, 0, &why);
    if (!v) fail_msg("%s\n%s", why.text, t->out);
    const json_t *phase = json_array_get(json_object_get(v, "compared"), 1);
    assert_int_equal(json_integer_value(json_object_get(phase, "phase")), 2);
    assert_string_equal(json_string_value(json_object_get(phase, "verdict")),
                        "equal within the limits");
    assert_true(json_array_size(json_object_get(phase, "checks")) > 8);
    assert_true(json_is_true(json_object_get(v, "equal")));
    assert_string_equal(json_string_value(json_object_get(v, "proof")), "limits");
    json_decref(v);
    copy(t, "grpo",
         "sed -i '/\"phase\": 2/s/\\(\"objective.kl\": \\)[-0-9.e]*/\\10.5/' x/metrics.jsonl");
    expect(t, e2e_run(t, "verify x --all --out r.json" LIMITS), 1);
    expect(t, e2e_run(t, "verify --receipt r.html"), 0);
    e2e_says(t, "the run differs");
    expect(t, e2e_shell(t, "cat r.html"), 0);
    e2e_says(t, "<td>metric: objective/kl</td><td>0.5</td>");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_backend_agrees),
        cmocka_unit_test(the_same_backend_is_equal_to_the_bit),
        cmocka_unit_test(no_reward_is_opened_and_nothing_is_written),
        cmocka_unit_test(phases_with_one_score_are_equal),
        cmocka_unit_test(limits_allow_what_rounding_does),
        cmocka_unit_test(a_flipped_bit_of_a_weight_is_found),
        cmocka_unit_test(a_flipped_bit_of_a_moment_is_found),
        cmocka_unit_test(a_changed_reward_is_found),
        cmocka_unit_test(a_changed_log_prob_is_found),
        cmocka_unit_test(a_changed_learning_rate_is_found),
        cmocka_unit_test(a_changed_metric_is_found),
        cmocka_unit_test(what_is_missing_is_said),
        cmocka_unit_test(all_that_is_missing_is_said),
        cmocka_unit_test(bad_input_is_refused),
        cmocka_unit_test(the_receipt_has_the_comparisons),
    };
    return cmocka_run_group_tests(tests, setup, e2e_teardown);
}
