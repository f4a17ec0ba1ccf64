// test_e2e_memory.c: a dry run prints the memory estimate of a run, and a run that does not fit is
// refused before it loads anything.
#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PPO                                                                                        \
    "--algo ppo.so --reward period_count.so --policy model --set policy.init=random "              \
    "--set prompts.path=prompts.txt --set sampling.max_new_tokens=8 --set batch.size=4 "           \
    "--set log.progress=off --phases 1 "

static void a_dry_run_lists_every_buffer(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, PPO "--dry-run"), 0);
    static const char *const lines[] = {"policy           weights ",
                                        "policy           packed weights ",
                                        "policy           gradients ",
                                        "policy           moments ",
                                        "policy           activations ",
                                        "policy           cache ",
                                        "reference        weights ",
                                        "cpu              workspace ",
                                        "host             rows ",
                                        "host             undo copy ",
                                        "host             program ",
                                        "all    ",
                                        "free   "};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        e2e_says(t, lines[i]);
    assert_int_equal(e2e_run(t, PPO "--set optim.kind=muon --dry-run --set log.format=json"), 0);
    e2e_says(t,
             "{\"event\": \"memory\", \"buffers\": [{\"role\": \"policy\", \"use\": \"weights\", ");
    e2e_says(t, "\"total_bytes\": ");
}

// The time of a run includes that of measuring held-out rows. Without rewards, they are not
// measured before the first phase.
static void a_dry_run_estimates_the_time_of_held_out_rows(void **state) {
    struct e2e *t = *state;
    static const char *const sft =
        "--algo sft.so --policy model --set policy.init=random --set data.path=texts.jsonl --set "
        "data.eval_path=held.jsonl --set batch.size=1 --set log.progress=off --dry-run ";
    e2e_write(t, "held.txt", "It was\nThe film\nI think\nA day\nNow\n"); // more rows than slots
    e2e_write(t, "texts.jsonl", "{\"text\": \"It was good.\"}\n{\"text\": \"It was bad.\"}\n");
    e2e_write(t, "held.jsonl", "{\"text\": \"The film was long.\"}\n");
    assert_int_equal(e2e_run(t, PPO "--dry-run"), 0);
    e2e_says(t, "time, estimated: ");
    assert_null(strstr(t->out, "held-out"));
    assert_int_equal(e2e_run(t, PPO "--set data.eval_path=held.txt --dry-run"), 0);
    e2e_says(t, " for 1 phase and 2 measurements of held-out rows (");
    assert_int_equal(e2e_run(t, "%s --phases 4 --set data.eval_every=2", sft), 0);
    e2e_says(t, " for 4 phases and 2 measurements of held-out rows (");
}

// A language model that a reward opens is counted before it is loaded.
static void a_rewards_language_model_is_counted(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, PPO "--reward \"lm_judge.so:model=default,ask=Is it good?\" "
                                    "--dry-run"),
                     0);
    e2e_says(t, "language model   packed weights ");
    e2e_says(t, "language model   activations ");
}

// While the gradients of some shards are being summed, finished sums of other shards wait to be
// added. The waiting sums need one copy of the gradients for each level of the tree.
static void waiting_sums_of_shards_are_counted(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *shards;
        long long copies;
    } cases[] = {{"--set parallel.shards=1", 1},
                 {"--set parallel.shards=2", 2},
                 {"--set parallel.shards=4", 3},
                 {"--set parallel.shards=8", 4}};
    static const char *const use = "\"role\": \"policy\", \"use\": \"gradients\", \"bytes\": ";
    long long one = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char command[600];
        snprintf(command, sizeof command, PPO "--dry-run --set log.format=json %s",
                 cases[i].shards);
        assert_int_equal(e2e_run(t, command), 0);
        const char *at = strstr(t->out, use);
        assert_non_null(at);
        const long long bytes = atoll(at + strlen(use));
        if (i == 0) one = bytes;
        assert_true(one > 0 && bytes == cases[i].copies * one);
    }
}

// Memory of one part of a phase is freed before the next part. During a large update, the KV cache
// is gone, and so are the activations of the reference and of the policy's first passes.
static void parts_of_a_phase_do_not_add_up(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "cp -r model wide && sed -i 's/\"n_embd\": 32/\"n_embd\": 768/; "
                                  "s/\"n_head\": 2/\"n_head\": 12/; "
                                  "s/\"n_layer\": 2/\"n_layer\": 6/' wide/config.json"),
                     0);
    // With 24 new tokens per row, the update needs the most memory. With 8 new tokens, an update in
    // f32 would need less memory than sampling.
#define UPDATE                                                                                     \
    "--policy wide --set batch.size=64 --set sampling.slots=64 --set sampling.max_new_tokens=24 "  \
    "--dry-run "
    assert_int_equal(e2e_run(t, PPO UPDATE), 0);
    e2e_says(t, "policy           activations ");
    e2e_says(t, "reference        packed weights ");
    assert_null(strstr(t->out, "policy           cache "));
    assert_null(strstr(t->out, "reference        activations "));
    // With small microbatches, sampling needs the most memory.
    assert_int_equal(e2e_run(t, PPO UPDATE "--set batch.microbatch_tokens=16"), 0);
    e2e_says(t, "policy           cache ");
}

// 12 * 40 * 16,384^2 parameters do not fit on any machine. The run is refused before any parameter
// is initialized or read.
static void a_run_that_does_not_fit_is_refused(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "cp -r model huge && sed -i 's/\"n_embd\": 32/\"n_embd\": "
                                  "16384/; s/\"n_head\": 2/\"n_head\": 128/; "
                                  "s/\"n_layer\": 2/\"n_layer\": 40/' huge/config.json"),
                     0);
    assert_int_equal(e2e_run(t, PPO "--policy huge --out x"), 2);
    e2e_says(t, " of memory are needed, ");
    e2e_says(t, " are free: policy ");
    e2e_says(t, " GiB (weights 484.");
    e2e_says(t, "gradients 484.");
    e2e_says(t, "moments 968.");
    e2e_says(t, "; less is taken with a lower batch.microbatch_tokens (now 4096), sampling.slots");
    e2e_says(t, ", with compute.recompute=layer, ");
    e2e_says(t, "compute.memory_check=false");
    assert_false(e2e_exists(t, "x"));
    // A dry run prints the numbers too.
    assert_int_equal(e2e_run(t, PPO "--policy huge --dry-run"), 2);
    e2e_says(t, "policy           moments ");
    // If the user switches off the check, the run starts and gets as far as the backend allows.
    assert_int_not_equal(e2e_run(t, PPO "--policy huge --set compute.memory_check=false --out x"),
                         0);
    assert_null(strstr(t->out, "are free: policy"));
    // Other commands refuse the model, too.
    assert_int_equal(e2e_run(t, "generate --model huge --prompt It"), 2);
    e2e_says(t, "the model '");
    e2e_says(t, " of memory are needed, ");
    e2e_says(t, "take a smaller model");
}

// The run would load 484 GiB. A dry run neither loads nor initializes the model. Checks that do not
// need the model still run.
static void a_dry_run_loads_nothing(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "cp -r model huge && sed -i 's/\"n_embd\": 32/\"n_embd\": "
                                  "16384/; s/\"n_head\": 2/\"n_head\": 128/; "
                                  "s/\"n_layer\": 2/\"n_layer\": 40/' huge/config.json"),
                     0);
    assert_int_equal(
        e2e_shell(t, "RLHF_TEST_FREE=9999999999999 "
                     "ASAN_OPTIONS=\"verify_asan_link_order=0:$ASAN_OPTIONS\" "
                     "LD_PRELOAD=\"$RLHF_TEST_PLUGINS/../faults/fault_space.so\" \"$HOST\" " PPO
                     "--policy huge --set compute.memory_check=false --dry-run --phases 3"),
        0);
    e2e_says(t, "policy           moments ");
    e2e_says(t, "dry run: all is set up for 3 phases; nothing was run or written");
    assert_int_equal(e2e_run(t, PPO "--out a"), 0);
    assert_int_equal(e2e_shell(t, "cp -rL a/checkpoints/latest more && sed -i "
                                  "'s/\"n_layer\": 2/\"n_layer\": 3/' more/config.json"),
                     0);
    assert_int_equal(e2e_run(t, PPO "--policy more --set policy.init=pretrained --dry-run"), 2);
    e2e_says(t, "/more has no tensor ");
    assert_int_equal(e2e_run(t, "--resume a --phases 2 --dry-run"), 0); // with its checkpoint
    e2e_says(t, "dry run: all is set up for 1 phase;");
}

// A reward's model stays loaded during the update. The estimate is the same whether the self-test
// loads the model or a later call does.
static void a_model_that_is_loaded_is_counted(void **state) {
    struct e2e *t = *state;
    const char *sanitize = getenv("RLHF_TEST_SANITIZE");
    if (sanitize && *sanitize) skip(); // the process's resident memory includes the sanitizer's
    double total[2] = {0, 0};
    for (int k = 0; k < 2; k++) {
        char path[512];
        size_t i;
        int found = 0;
        json_t *b;
        assert_int_equal(
            e2e_shell(t,
                      "\"$HOST\" --algo ppo.so --reward imdb.so:self_test=%s --phases 1 "
                      "--threads 2 --dry-run --set log.format=json --out x | "
                      "grep '\"event\": \"memory\"' >memory.json",
                      k ? "true" : "false"),
            0);
        snprintf(path, sizeof path, "%s/memory.json", t->dir);
        json_t *memory = json_load_file(path, 0, NULL);
        assert_non_null(memory);
        json_array_foreach(json_object_get(memory, "buffers"), i, b) {
            const char *role = json_string_value(json_object_get(b, "role"));
            if (role && strcmp(role, "classifier") == 0) found++;
        }
        assert_true(found >= 2); // weights and packed weights
        total[k] = json_number_value(json_object_get(memory, "total_bytes"));
        json_decref(memory);
    }
    printf("told with the model loaded %.1f MiB, without %.1f\n", total[1] / 0x1p20,
           total[0] / 0x1p20);
    assert_true(total[1] > 0.98 * total[0] && total[1] < 1.02 * total[0]);
}

// With dynamic sampling, the rows of further rounds exist at the same time as the phase's first
// rows. Joining them makes a third set of rows.
static void fresh_rows_are_counted(void **state) {
    struct e2e *t = *state;
    json_int_t rows[2] = {0, 0};
    for (int k = 0; k < 2; k++) {
        char path[512];
        size_t i;
        json_t *b;
        assert_int_equal(
            e2e_shell(t,
                      "\"$HOST\" --algo grpo.so:group_size=2,dynamic_sampling=%s --reward "
                      "period_count.so --policy model --set policy.init=random --set "
                      "prompts.path=prompts.txt --set sampling.max_new_tokens=8 --set "
                      "batch.size=4 --phases 1 --dry-run --set log.format=json >memory.json "
                      "2>/dev/null",
                      k ? "true" : "false"),
            0);
        snprintf(path, sizeof path, "%s/memory.json", t->dir);
        json_t *v = json_load_file(path, 0, NULL);
        json_array_foreach(json_object_get(v, "buffers"), i, b) {
            if (strcmp(json_string_value(json_object_get(b, "use")), "rows") == 0)
                rows[k] = json_integer_value(json_object_get(b, "bytes"));
        }
        json_decref(v);
    }
    assert_true(rows[0] > 0 && 2 * rows[1] == 3 * rows[0]);
}

// While memory is estimated, models get placeholder numbers. A model plugin of another author may
// fail on these numbers. Then the message names the function that failed, and the run continues.
static void a_model_that_cannot_be_counted(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "cp -r model other && sed -i "
                                  "'s/\"gpt2\"/\"bad_gpt2\"/' other/config.json"),
                     0);
    assert_int_equal(e2e_shell(t,
                               "BAD=counting RLHF_PLUGIN_PATH=\"$RLHF_TEST_PLUGINS\" \"$HOST\" " PPO
                               "--policy other --threads 1 --out b"),
                     0);
    e2e_says(t, "is known in part only, and whether all of it fits is not checked: models are");
    e2e_says(t, "that failed (");
    e2e_says(t, "forward()");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_dry_run_lists_every_buffer, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_dry_run_estimates_the_time_of_held_out_rows, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(a_rewards_language_model_is_counted, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(a_dry_run_loads_nothing, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_model_that_cannot_be_counted, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(waiting_sums_of_shards_are_counted, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(parts_of_a_phase_do_not_add_up, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_model_that_is_loaded_is_counted, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(fresh_rows_are_counted, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_run_that_does_not_fit_is_refused, e2e_setup,
                                        e2e_teardown)};
    return cmocka_run_group_tests_name("e2e_memory", tests, NULL, NULL);
}
