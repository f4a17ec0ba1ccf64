// test_canaries.c: `plugin check` catches each canary by the rule meant for it. It finds nothing in
// correct plugins: the canary without an error, and our own plugins.
//
// No result depends on speed, with one exception: a deadline ends a plugin that hangs.
#include "support/scratch.h"

#include "check/check.h"

#include <unistd.h>

static void check_file(const char *path, const char *options, int32_t seconds,
                       struct rlhf__check_report *out) {
    struct rlhf__error err = {0};
    struct rlhf__dirs dirs = {.exe = ""};
    char real[RLHF__PATH_CAP];
    json_t *set = NULL;
    if (*options) check_ok(rlhf__json_parse("options", options, strlen(options), &set, &err), &err);
    if (!rlhf__path_real(path, real)) fail_msg("no file %s", path);
    snprintf(dirs.lib, sizeof dirs.lib, "%s/lib/rlhf/1", getenv("RLHF_BUILD_DIR"));
    snprintf(dirs.exe, sizeof dirs.exe, "%s/bin", getenv("RLHF_BUILD_DIR"));
    const struct rlhf__check_request q = {&dirs, real, set, NULL, seconds};
    check_ok(rlhf__check_file(&q, out, &err), &err);
    json_decref(set);
}

static const char *text_of(const json_t *row, const char *key) {
    return json_string_value(json_object_get(row, key));
}

// The findings, for messages.
static void put_found(const struct rlhf__check_report *r, char *out, size_t cap) {
    size_t i, n = 0;
    json_t *row;
    out[0] = 0;
    json_array_foreach(r->found, i, row) {
        if (n < cap)
            n += (size_t)snprintf(out + n, cap - n, "%s (%s); ", text_of(row, "rule"),
                                  text_of(row, "saw"));
    }
}

static int caught(const char *name, const char *rule, const char *options) {
    struct rlhf__check_report r;
    char path[1024], found[4000];
    size_t i, hits = 0;
    json_t *row;
    snprintf(path, sizeof path, "%s/tests/canaries/%s.so", getenv("RLHF_BUILD_DIR"), name);
    check_file(path, options, 100, &r);
    json_array_foreach(r.found, i, row) {
        hits += strcmp(text_of(row, "rule"), rule) == 0;
        assert_true(json_integer_value(json_object_get(row, "line")) > 0);
    }
    put_found(&r, found, sizeof found);
    if (!hits) print_error("%s: not caught by %s; found: %s\n", name, rule, found);
    // The rule meant for the canary must be the only one that reports it.
    const size_t all = json_array_size(r.found);
    if (all > hits) print_error("%s: found beside %s: %s\n", name, rule, found);
    rlhf__check_report_finish(&r);
    return hits && all == hits;
}

static void each_reward_is_caught(void **state) {
    static const struct {
        const char *name, *rule;
    } all[] = {{"exports", "exports"},
               {"id", "id"},
               {"summary", "summary"},
               {"summary_blank", "summary"},
               {"help", "help"},
               {"reduce", "reduce"},
               {"create", "create"},
               {"destroy_null", "destroy"},
               {"crash", "crash"},
               {"ends", "ends-process"},
               {"fork", "ends-process"},
               {"status", "status"},
               {"words", "no-words"},
               {"leak", "leak"},
               {"leak_failed", "leak"},
               {"free", "free"},
               {"overrun", "alloc-overrun"},
               {"memory", "out-of-memory"},
               {"metric", "metric-name"},
               {"metric_text", "metric-text"},
               {"metric_phase", "metric-phase"},
               {"metric_path", "metric-text"},
               {"metric_weight", "metric-weight"},
               {"metric_combine", "metric-combine"},
               {"extension", "extension"},
               {"thread", "thread"},
               {"state", "state"},
               {"running", "unsaved-state"},
               {"forgets", "unsaved-state"},
               {"save", "save"},
               {"load", "load"},
               {"borrowed", "borrowed"},
               {"text", "text"},
               {"unwritten", "unwritten"},
               {"outside", "outside"},
               {"before", "outside"},
               {"repeat", "repeat"},
               {"order", "order"},
               {"alone", "row-alone"},
               {"verdict", "verdict"},
               {"changes", "room"},
               {"option_changes", "room"},
               {"utf8", "crash"}};
    int missed = 0;
    (void)state;
    for (size_t i = 0; i < CHECK_COUNT(all); i++) {
        char name[64];
        snprintf(name, sizeof name, "reward_%s", all[i].name);
        missed += !caught(name, all[i].rule, "");
    }
    assert_int_equal(missed, 0);
}

static void each_algorithm_is_caught(void **state) {
    static const struct {
        const char *name, *rule;
    } all[] = {{"plan", "plan"},
               {"room", "room"},
               {"room_loss", "room"},
               {"room_size", "room"},
               {"advantages", "advantages"},
               {"use", "row-use"},
               {"no_gradient", "row-use"},
               {"reduce", "reduce"},
               {"outside", "loss-outside"},
               {"borrowed", "borrowed"},
               {"finite", "finite"},
               {"split", "split"},
               {"group", "split"},
               {"carry_outside", "loss-outside"},
               {"memory", "out-of-memory"},
               {"left_out", "left-out"},
               {"derivative", "derivative"},
               {"metric", "metric-name"},
               {"running", "unsaved-state"},
               {"forgets", "unsaved-state"},
               {"odd", "reduce"},
               {"choose_range", "choose"},
               {"choose_unwritten", "choose"},
               {"choose_outside", "choose"},
               {"choose_borrowed", "borrowed"},
               {"choose_room", "room"},
               {"choose_replaces", "room"},
               {"choose_memory", "out-of-memory"},
               {"choose_forgets", "unsaved-state"},
               {"choose_unsaved", "unsaved-state"}};
    int missed = 0;
    (void)state;
    for (size_t i = 0; i < CHECK_COUNT(all); i++) {
        char name[64];
        snprintf(name, sizeof name, "algo_%s", all[i].name);
        missed += !caught(name, all[i].rule, "");
    }
    assert_int_equal(missed, 0);
}

static void each_sink_and_backend_is_caught(void **state) {
    static const struct {
        const char *name, *rule;
    } all[] = {{"sink_borrowed", "borrowed"},       {"sink_words", "no-words"},
               {"sink_memory", "out-of-memory"},    {"sink_crash", "sink"},
               {"kernels_open", "kernels-open"},    {"kernels_json", "describe"},
               {"kernels_missing", "describe"},     {"kernels_silent", "no-words"},
               {"kernels_no_card", "kernels-open"}, {"sink_floats", "floats"},
               {"sink_floats_load", "floats"},      {"sink_changes", "room"}};
    int missed = 0;
    (void)state;
    for (size_t i = 0; i < CHECK_COUNT(all); i++)
        missed += !caught(all[i].name, all[i].rule, "");
    assert_int_equal(missed, 0);
}

static void each_environment_is_caught(void **state) {
    static const struct {
        const char *name, *rule;
    } all[] = {{"environment_tools", "episode-tools"},  {"environment_metric", "metric-text"},
               {"environment_memory", "out-of-memory"}, {"environment_seed", "episode-seed"},
               {"environment_state", "episode-state"},  {"environment_reset_ends", "episode"},
               {"environment_silent", "episode"},       {"environment_role", "episode"},
               {"environment_unasked", "episode"},      {"environment_unanswered", "episode"},
               {"environment_order", "episode-repeat"}, {"environment_remembers", "episode-repeat"},
               {"environment_end", "episode"},          {"environment_verdict", "episode"},
               {"environment_open_verdict", "episode"}, {"environment_changes", "room"},
               {"environment_closes", "room"},          {"environment_outside", "episode-outside"},
               {"environment_borrowed", "borrowed"},    {"environment_text", "text"},
               {"environment_words", "no-words"},       {"environment_crash", "crash"},
               {"environment_finish_says", "episode"},  {"environment_leak", "leak"},
               {"environment_later", "episode-later"},  {"environment_part", "episode-later"},
               {"environment_reset_pays", "episode"},   {"environment_no_role", "episode"},
               {"environment_failed", "episode"},       {"environment_model_left", "leak"}};
    int missed = 0;
    (void)state;
    for (size_t i = 0; i < CHECK_COUNT(all); i++)
        missed += !caught(all[i].name, all[i].rule, "");
    assert_int_equal(missed, 0);
}

// Small models, so that numbers are tested.
#define GPT2                                                                                       \
    "{\"n_layer\": 2, \"n_head\": 2, \"n_embd\": 16, \"n_positions\": 32, \"vocab_size\": 40}"
#define DISTILBERT                                                                                 \
    "{\"n_layers\": 2, \"n_heads\": 2, \"dim\": 16, \"hidden_dim\": 32, "                          \
    "\"max_position_embeddings\": 32, \"vocab_size\": 40}"
#define DECODER(type)                                                                              \
    "{\"model_type\": \"" type                                                                     \
    "\", \"vocab_size\": 40, \"hidden_size\": 16, \"num_hidden_layers\": 2, "                      \
    "\"num_attention_heads\": 2, "                                                                 \
    "\"num_key_value_heads\": 1, \"intermediate_size\": 24, \"max_position_embeddings\": 32}"

static void each_model_is_caught(void **state) {
    static const struct {
        const char *name, *rule;
    } all[] = {
        {"rows", "rows"},     {"logp", "log-probs"}, {"step", "step"},  {"gradient", "gradient"},
        {"param", "param"},   {"past", "param"},     {"open", "open"},  {"value", "gradient"},
        {"entropy", "heads"}, {"kl", "kl"},          {"score", "rows"}, {"base", "adapter"},
        {"bf16", "bf16"}};
    int missed = 0;
    (void)state;
    for (size_t i = 0; i < CHECK_COUNT(all); i++) {
        char name[64];
        snprintf(name, sizeof name, "model_%s", all[i].name);
        missed += !caught(name, all[i].rule, GPT2);
    }
    assert_int_equal(missed, 0);
}

// The check waits for a hanging function only once. It does not call the function again, and
// reports the tests that it skipped.
static void check_hang(const char *name, const char *saw, const char *left) {
    struct rlhf__check_report r;
    char path[1024], found[4000], told[4000] = "";
    size_t i, n = 0;
    json_t *row;
    snprintf(path, sizeof path, "%s/tests/canaries/%s.so", getenv("RLHF_BUILD_DIR"), name);
    check_file(path, "", 10, &r);
    put_found(&r, found, sizeof found);
    json_array_foreach(r.facts, i, row) if (n < sizeof told) n +=
        (size_t)snprintf(told + n, sizeof told - n, "%s; ", text_of(row, "text"));
    if (json_array_size(r.found) != 1 || strncmp(found, "hang", 4) != 0 || !strstr(found, saw))
        fail_msg("%s: found: %s", name, found);
    if (!strstr(told, left)) fail_msg("%s: told: %s", name, told);
    rlhf__check_report_finish(&r);
}

static void one_that_waits_for_ever_is_caught(void **state) {
    (void)state;
    check_hang("reward_hang", "create() with loud=true",
               "create() was not called again: what is left of \"limits\" was not tried");
    check_hang("reward_hang_score", "score() of 11 rows of three groups",
               "score() was not called again: what is left of \"score-memory\" was not tried");
}

// A plugin may wait if it logs a warning that announces this, and if it polls for cancellation. The
// check cancels the wait and does not report an error.
static void one_that_waits_for_a_service_is_stopped(void **state) {
    struct rlhf__check_report r;
    char path[1024], found[4000];
    size_t i, told = 0, left = 0;
    json_t *row;
    (void)state;
    snprintf(path, sizeof path, "%s/tests/canaries/reward_waits.so", getenv("RLHF_BUILD_DIR"));
    check_file(path, "", 100, &r);
    put_found(&r, found, sizeof found);
    assert_string_equal(found, "");
    json_array_foreach(r.facts, i, row) {
        told += strcmp(text_of(row, "text"), "score() waits: nobody answers") == 0;
        left += strstr(text_of(row, "text"), "score() was not called again") != NULL;
    }
    assert_int_equal(told, 1);
    assert_int_equal(left, 3);
    rlhf__check_report_finish(&r);
}

// A slow reward is not taken for one that hangs: it gets fewer rows at once. At 3 ms a row, 10,000
// rows would take longer than the time limit of 20 s.
static void a_slow_one_gets_fewer_rows(void **state) {
    struct rlhf__check_report r;
    char path[1024], found[4000];
    size_t i, told = 0;
    json_t *row;
    (void)state;
    snprintf(path, sizeof path, "%s/tests/canaries/reward_slow.so", getenv("RLHF_BUILD_DIR"));
    check_file(path, "", 20, &r);
    put_found(&r, found, sizeof found);
    assert_string_equal(found, "");
    json_array_foreach(r.facts, i, row) told +=
        strncmp(text_of(row, "text"), "score() takes ", 14) == 0;
    assert_int_equal(told, 1);
    rlhf__check_report_finish(&r);
}

// Checks a plugin that tries to write to a file. Returns the report, without findings.
static void check_sneak(const char *name, struct rlhf__check_report *r) {
    char path[1024], found[4000], file[1024];
    snprintf(path, sizeof path, "%s/tests/canaries/%s.so", getenv("RLHF_BUILD_DIR"), name);
    snprintf(file, sizeof file, "/tmp/rlhf-canary-%ld", (long)getpid());
    setenv("CANARY_FILE", file, 1);
    check_file(path, "", 100, r);
    unsetenv("CANARY_FILE");
    const int left = access(file, F_OK) == 0;
    unlink(file);
    put_found(r, found, sizeof found);
    assert_string_equal(found, "");
    assert_int_equal(left, 0);
}

// A reward or a sink of others is confined as a worker is in a run.
static void files_and_sockets_are_refused(void **state) {
    struct rlhf__check_report r;
    (void)state;
    check_sneak("sink_sneaks", &r);
    rlhf__check_report_finish(&r);
    check_sneak("reward_sneaks", &r);
    // A row that it marks as failed is named, once for each kind of rows.
    size_t i, told = 0;
    json_t *row;
    json_array_foreach(r.facts, i, row) {
        const char *text = text_of(row, "text");
        told += strstr(text, "score() marks 1 of 11 rows as failed, which are not compared; the "
                             "first is row 2 ({\"prompt\"") != NULL &&
                strstr(text, "socket: Permission denied; it runs in a process that cannot write "
                             "files and has no network (its option network=true") != NULL;
        told += strncmp(text, "score() marks ", 14) == 0;
    }
    assert_int_equal(told, 5); // the first of four kinds counts twice
    rlhf__check_report_finish(&r);
}

// A score that is not finite is reported, but not as an error.
static void what_is_no_number_is_told(void **state) {
    struct rlhf__check_report r;
    char path[1024], found[4000], told[4000] = "";
    size_t i, n = 0;
    json_t *row;
    (void)state;
    snprintf(path, sizeof path, "%s/tests/canaries/reward_odd.so", getenv("RLHF_BUILD_DIR"));
    check_file(path, "", 100, &r);
    put_found(&r, found, sizeof found);
    assert_string_equal(found, "");
    json_array_foreach(r.facts, i, row) if (n < sizeof told) n +=
        (size_t)snprintf(told + n, sizeof told - n, "%s; ", text_of(row, "text"));
    if (!strstr(
            told,
            "score() of 4 rows with empty responses: 4 rows have a number that is not finite; "))
        fail_msg("told: %s", told);
    assert_null(strstr(told, "score() of 1 row: "));
    rlhf__check_report_finish(&r);
}

// If one process and two processes compute different sums, this is reported, but not as an error.
static void sums_of_one_process_are_told(void **state) {
    static const struct {
        const char *name;
        int told;
    } all[] = {{"algo_nothing", 1}, {"algo_sums", 1}, {"algo_shards", 0}, {"algo_together", 1}};
    (void)state;
    for (size_t k = 0; k < CHECK_COUNT(all); k++) {
        struct rlhf__check_report r;
        char path[1024], found[4000];
        size_t i;
        int told = 0;
        json_t *row;
        snprintf(path, sizeof path, "%s/tests/canaries/%s.so", getenv("RLHF_BUILD_DIR"),
                 all[k].name);
        check_file(path, "", 100, &r);
        put_found(&r, found, sizeof found);
        assert_string_equal(found, "");
        json_array_foreach(r.facts, i, row) told +=
            strstr(text_of(row, "text"), "on two processes, \"reinforce/loss\" is ") != NULL;
        if (told != all[k].told) fail_msg("%s: told %d times", all[k].name, told);
        rlhf__check_report_finish(&r);
    }
}

// A sink may write to the run's directory.
static void a_sink_writes_files(void **state) {
    struct rlhf__check_report r;
    char path[1024], found[4000];
    size_t i;
    json_t *row;
    (void)state;
    snprintf(path, sizeof path, "%s/tests/canaries/sink_writes.so", getenv("RLHF_BUILD_DIR"));
    check_file(path, "", 100, &r);
    put_found(&r, found, sizeof found);
    assert_string_equal(found, "");
    json_array_foreach(r.facts, i, row) if (strstr(text_of(row, "text"), "it fails"))
        fail_msg("told: %s", text_of(row, "text"));
    rlhf__check_report_finish(&r);
}

static void check_sound(const char *path, const char *options) {
    struct rlhf__check_report r;
    char found[4000];
    check_file(path, options, 110, &r);
    put_found(&r, found, sizeof found);
    if (json_array_size(r.found)) fail_msg("%s: %s", path, found);
    assert_true(r.steps > 3);
    rlhf__check_report_finish(&r);
}

static void nothing_is_found_in_what_is_sound(void **state) {
    static const struct {
        const char *file, *options;
    } own[] = {{"rewards/answer", ""},
               {"rewards/bt_rm", ""},
               {"rewards/format", ""},
               {"rewards/imdb", ""},
               {"rewards/length", "{\"max_len\": 64}"},
               {"rewards/lm_judge", "{\"model\": \"m\", \"ask\": \"Is it kind?\"}"},
               {"rewards/ngram3", ""},
               {"rewards/period_count", ""},
               {"environments/guess", ""},
               {"environments/tools", ""},
               {"algos/bradley_terry", ""},
               {"algos/classify", ""},
               {"algos/dpo", ""},
               {"algos/grpo", ""},
               {"algos/grpo_iterative", ""},
               {"algos/kto", ""},
               {"algos/opd", ""},
               {"algos/ppo", ""},
               {"algos/rloo", ""},
               {"algos/sft", ""},
               {"sinks/csv", ""},
               {"sinks/tensorboard", ""},
               {"sinks/trackio", "{\"python\": \"/bin/false\"}"},
               {"sinks/wandb", "{\"python\": \"/bin/false\", \"mode\": \"offline\"}"},
               {"kernels/kernels_reference", ""},
               {"kernels/kernels_cpu", ""},
               {"models/distilbert", ""},
               {"models/distilbert", DISTILBERT},
               {"models/gpt2", ""},
               {"models/gpt2", GPT2},
               {"models/llama", DECODER("llama")},
               {"models/llama", DECODER("qwen3")}};
    char path[1024];
    (void)state;
    snprintf(path, sizeof path, "%s/tests/canaries/reward_nothing.so", getenv("RLHF_BUILD_DIR"));
    check_sound(path, "");
    snprintf(path, sizeof path, "%s/tests/canaries/reward_compares.so", getenv("RLHF_BUILD_DIR"));
    check_sound(path, "");
    snprintf(path, sizeof path, "%s/tests/canaries/algo_nothing.so", getenv("RLHF_BUILD_DIR"));
    check_sound(path, "");
    snprintf(path, sizeof path, "%s/tests/canaries/algo_kept.so", getenv("RLHF_BUILD_DIR"));
    check_sound(path, "");
    snprintf(path, sizeof path, "%s/tests/canaries/algo_choose_kept.so", getenv("RLHF_BUILD_DIR"));
    check_sound(path, "");
    snprintf(path, sizeof path, "%s/tests/canaries/environment_nothing.so",
             getenv("RLHF_BUILD_DIR"));
    check_sound(path, "");
    snprintf(path, sizeof path, "%s/tests/canaries/environment_model_kept.so",
             getenv("RLHF_BUILD_DIR"));
    check_sound(path, "");
    snprintf(path, sizeof path, "%s/tests/canaries/sink_nothing.so", getenv("RLHF_BUILD_DIR"));
    check_sound(path, "");
    snprintf(path, sizeof path, "%s/tests/canaries/kernels_nothing.so", getenv("RLHF_BUILD_DIR"));
    check_sound(path, "");
    snprintf(path, sizeof path, "%s/tests/canaries/model_nothing.so", getenv("RLHF_BUILD_DIR"));
    check_sound(path, GPT2);
    for (size_t i = 0; i < CHECK_COUNT(own); i++) {
        snprintf(path, sizeof path, "%s/lib/rlhf/1/%s.so", getenv("RLHF_BUILD_DIR"), own[i].file);
        check_sound(path, own[i].options);
    }
    // A plugin that starts processes.
    char command[1024];
    snprintf(command, sizeof command, "{\"command\": \"'%s/tests/answering' length\"}",
             getenv("RLHF_BUILD_DIR"));
    snprintf(path, sizeof path, "%s/lib/rlhf/1/rewards/exec.so", getenv("RLHF_BUILD_DIR"));
    check_sound(path, command);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_reward_is_caught),
        cmocka_unit_test(a_slow_one_gets_fewer_rows),
        cmocka_unit_test(files_and_sockets_are_refused),
        cmocka_unit_test(each_algorithm_is_caught),
        cmocka_unit_test(each_model_is_caught),
        cmocka_unit_test(each_sink_and_backend_is_caught),
        cmocka_unit_test(each_environment_is_caught),
        cmocka_unit_test(one_that_waits_for_ever_is_caught),
        cmocka_unit_test(one_that_waits_for_a_service_is_stopped),
        cmocka_unit_test(what_is_no_number_is_told),
        cmocka_unit_test(sums_of_one_process_are_told),
        cmocka_unit_test(a_sink_writes_files),
        cmocka_unit_test(nothing_is_found_in_what_is_sound),
    };
    return cmocka_run_group_tests_name("canaries", tests, NULL, NULL);
}
