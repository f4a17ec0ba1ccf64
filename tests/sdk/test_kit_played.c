// test_kit_played.c: the kit of rlhf/test.h in the role of the host. It combines metrics, and
// provides services, streams, lists, batches, choices of prompts and runs.
#include "support/check.h"

#include <rlhf/test.h>

#include <math.h>
#include <stdio.h>
#include <unistd.h>

static struct rlhf_test_host host;

// Hides messages that the kit prints on stderr when a test makes an error on purpose.
static int quiet(void) {
    int kept = dup(STDERR_FILENO);
    fflush(stderr);
    assert_non_null(freopen("/dev/null", "w", stderr));
    return kept;
}
static void loud(int kept) {
    fflush(stderr);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    close(kept);
}

// ---- metrics and failures ----

static double read_metric(const char *name) {
    double value = -99;
    assert_true(rlhf_test_metric(&host, name, &value));
    return value;
}

static void metrics_are_combined(void **state) {
    const rlhf_host *h = &host.table;
    double value;
    (void)state;
    rlhf_test_init(&host, 1);
    rlhf_metric_mean(h, "mean", 0.1, 49); // a single report keeps its bits
    assert_true(read_metric("mean") == 0.1);
    rlhf_metric_mean(h, "mean", 1, 1);
    assert_true(read_metric("mean") == (49 * 0.1 + 1) / 50);
    rlhf_metric_add(h, "sum", 2);
    rlhf_metric_add(h, "sum", 3);
    rlhf_metric_last(h, "last", 2);
    rlhf_metric_last(h, "last", 1);
    for (int i = 0; i < 3; i++) {
        h->metric(h, "max", i == 1, 1, RLHF_COMBINE_MAX);
        h->metric(h, "min", i != 1, 1, RLHF_COMBINE_MIN);
    }
    assert_true(read_metric("sum") == 5 && read_metric("last") == 1);
    assert_true(read_metric("max") == 1 && read_metric("min") == 0);
    rlhf_metric_mean(h, "nothing", 7, 0);
    assert_false(rlhf_test_metric(&host, "nothing", &value)); // a mean without weight
    rlhf_metric_mean(h, "nothing", NAN, 0);
    rlhf_metric_mean(h, "nothing", 7, 3);
    assert_true(read_metric("nothing") == 7);
    for (int i = 0; i < 3; i++) { // a NaN stays, as in the host
        h->metric(h, "max-nan", i == 1 ? (double)NAN : 1, 1, RLHF_COMBINE_MAX);
        h->metric(h, "min-nan", i == 1 ? (double)NAN : 1, 1, RLHF_COMBINE_MIN);
    }
    assert_true(isnan(read_metric("max-nan")) && isnan(read_metric("min-nan")));
    assert_int_equal(host.n_bad, 0);
    rlhf_test_phase(&host);
    assert_false(rlhf_test_metric(&host, "sum", &value));
    rlhf_metric_add(h, "sum", 1);
    assert_true(read_metric("sum") == 1);
}

static void wrong_metrics_are_failed_checks(void **state) {
    const rlhf_host *h = &host.table;
    (void)state;
    rlhf_test_init(&host, 1);
    int kept = quiet();
    rlhf_metric_add(h, "two", 1);
    rlhf_metric_last(h, "two", 1);
    const uint32_t two_ways = host.n_bad;
    h->metric(h, "weight", 1, -1, RLHF_COMBINE_MEAN);
    h->metric(h, "nan", 1, (double)NAN, RLHF_COMBINE_SUM);
    h->metric(h, "inf", 1, (double)INFINITY, RLHF_COMBINE_SUM);
    h->metric(h, "how", 1, 1, 0);
    loud(kept);
    assert_int_equal(two_ways, 1);
    assert_int_equal(host.n_bad, 5);
    assert_int_equal(host.n_metrics, 1);
}

static void services_know_who_calls(void **state) {
    static struct rlhf_test_rows rows;
    static const struct rlhf_test_row_value values[] = {{"n", RLHF_JSON_NUMBER, 0, NULL, 4}};
    rlhf_row *row = NULL;
    rlhf_str text;
    double n = 0;
    (void)state;
    rlhf_test_init(&host, 1);
    assert_string_equal(rlhf_test_failure(&host), "");
    rlhf_test_rows_init(&rows, values, 1);
    rlhf_test_offer(&host, RLHF_SVC_ROW, &rows.table);
    assert_int_equal(rows.table.open(&host.table, (rlhf_str){"{}", 2}, &row), RLHF_OK);
    assert_int_equal(rows.table.number(&host.table, row, "n", &n), RLHF_OK);
    assert_true(n == 4);
    assert_int_equal(rows.table.string(&host.table, row, "n", &text), RLHF_E_INVALID);
    assert_non_null(strstr(rlhf_test_failure(&host), "\"n\""));
    rows.table.close(&host.table, row);
    assert_int_equal(rows.open_count, 0);
}

// ---- streams and lists ----

static void streams_know_what_is_left(void **state) {
    static struct rlhf_test_stream s;
    char byte[4];
    (void)state;
    rlhf_test_stream_init(&s);
    assert_int_equal(s.in.left(&s.in), 0);
    assert_int_equal(s.out.write(&s.out, "abc", 3), RLHF_OK);
    assert_int_equal(s.in.left(&s.in), 3);
    assert_int_equal(s.in.read(&s.in, byte, 1), RLHF_OK);
    assert_int_equal(s.in.left(&s.in), 2);
    assert_int_equal(s.in.read(&s.in, byte, 3), RLHF_E_IO);
    assert_int_equal(s.in.left(&s.in), 2);
}

static void lists_are_set(void **state) {
    struct config {
        const char *const *any, *const *some;
    };
    static const char *const allowed[] = {"a", "b", NULL}, *const def[] = {"b", NULL};
    static const char *const good[] = {"a", "a", NULL}, *const bad[] = {"a", "c", NULL};
    static const rlhf_opt options[] = {RLHF_OPT_LIST(struct config, any, NULL, NULL, "anything"),
                                       RLHF_OPT_LIST(struct config, some, def, allowed, "some")};
    const rlhf_plugin p = {.size = sizeof p,
                           .id = "org.example.l",
                           .opts = options,
                           .n_opts = 2,
                           .opt_stride = sizeof *options,
                           .config_size = sizeof(struct config)};
    struct config c;
    (void)state;
    rlhf_test_config(&p, &c);
    assert_non_null(c.any); // empty, but never NULL
    assert_null(c.any[0]);
    assert_string_equal(c.some[0], "b");
    int kept = quiet();
    const int refused =
        !rlhf_test_set_list(&p, &c, "some", bad) && !rlhf_test_set(&p, &c, "any", "x");
    loud(kept);
    assert_true(refused);
    assert_string_equal(c.some[0], "b");
    assert_true(rlhf_test_set_list(&p, &c, "some", good) && rlhf_test_set_list(&p, &c, "any", bad));
    assert_ptr_equal(c.some, good);
    assert_ptr_equal(c.any, bad);
}

// ---- batches, prompts, runs ----

static struct rlhf_test_batch batch;

// The reward is the difference of the last token's two log-probs, plus the turn of that token, so
// that a test can see the turn.
static rlhf_status last_token(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    (void)self;
    for (uint32_t i = 0; i < in->n; i++) {
        const int32_t t = in->offset[i + 1] - 1;
        out->seq[i] = in->turn ? (float)in->turn[t] : 0;
        if (in->logp_sampled && in->logp_ref) out->seq[i] += in->logp_sampled[t] - in->logp_ref[t];
    }
    return in->end && !in->messages ? RLHF_E_INTERNAL : RLHF_OK;
}

static void batches_have_what_is_asked_for(void **state) {
    rlhf_reward_ops ops = {.size = sizeof ops, .score = last_token};
    (void)state;
    rlhf_test_batch_init(&batch, 6, 2, 2, 7);
    assert_int_equal(batch.loss_in.batch_sequences, 6);
    assert_int_equal(batch.source[5], 2);
    assert_ptr_equal(batch.rollout.logp_named[1], batch.named[1]);
    assert_null(batch.logp_named[2]);
    for (int32_t t = 0; t < batch.offset[6]; t++)
        assert_true((batch.turn[t] == 0) == (batch.named[1][t] < 0)); // only response tokens
    assert_int_equal(rlhf_test_score(&ops, NULL, &batch), RLHF_OK);
    assert_true(batch.seq[0] == 0);
    ops.flags = RLHF_REWARD_LOGP_SAMPLED | RLHF_REWARD_LOGP_REF;
    assert_int_equal(rlhf_test_score(&ops, NULL, &batch), RLHF_OK);
    const int32_t t = batch.offset[1] - 1;
    assert_true(batch.seq[0] != 0 && batch.seq[0] == batch.logp_sampled[t] - batch.logp_ref[t]);
    ops.flags = RLHF_REWARD_TURNS;
    rlhf_test_batch_turns(&batch);
    assert_int_equal(rlhf_test_score(&ops, NULL, &batch), RLHF_OK);
    for (uint32_t i = 0; i < 6; i++)
        assert_true(batch.seq[i] ==
                    (batch.offset[i + 1] - batch.offset[i] - batch.prompt_len[i] > 1));
}

// Chooses prompt `*self` every time. If *self is negative, omits one choice.
static rlhf_status choose_one(void *self, const rlhf_prompts *in, rlhf_choice *out) {
    for (uint32_t k = 0; k + (*(int64_t *)self < 0) < in->n_choose; k++)
        out->prompt[k] = *(int64_t *)self;
    return RLHF_OK;
}

static void choices_are_checked(void **state) {
    static struct rlhf_test_prompts p;
    const rlhf_algo_ops ops = {.size = sizeof ops, .choose_prompts = choose_one};
    int64_t which = 3, chosen[4];
    (void)state;
    rlhf_test_prompts_init(&p, 4, 4);
    assert_true(isnan(p.table.last_score[3]));
    assert_int_equal(rlhf_test_choose(&ops, &which, &p, chosen), RLHF_OK);
    assert_int_equal(p.table.seen[3], 1); // in one phase, although four times in this phase
    assert_int_equal(p.table.phase, 1);
    which = 4; // this prompt does not exist
    assert_int_equal(rlhf_test_choose(&ops, &which, &p, chosen), RLHF_E_INTERNAL);
    which = -1; // one choice is left out
    assert_int_equal(rlhf_test_choose(&ops, &which, &p, chosen), RLHF_E_INTERNAL);
}

struct seen {
    int64_t begun, last, calls, ends, fail_at, from;
    double value;
    char why[32];
};

static rlhf_status sink_begin(void *self, const rlhf_sink_run *run, rlhf_sink_answer *answer) {
    struct seen *s = self;
    s->begun = run->resumed ? run->phases_done : -1;
    answer->from_phase = s->from;
    return strcmp(run->name, "run") == 0 ? RLHF_OK : RLHF_E_INTERNAL;
}
static rlhf_status sink_phase(void *self, const rlhf_sink_phase *in) {
    struct seen *s = self;
    s->last = in->phases_done;
    s->calls++;
    s->value = in->value[0];
    return in->phases_done == s->fail_at ? RLHF_E_IO : RLHF_OK;
}
static rlhf_status sink_end(void *self, const rlhf_sink_end *in) {
    struct seen *s = self;
    s->ends += 1 + in->how;
    snprintf(s->why, sizeof s->why, "%s", in->why);
    return RLHF_OK;
}

static void runs_are_played(void **state) {
    static const char *const names[] = {"x"};
    static const double values[] = {1.5};
    const rlhf_sink_ops ops = {
        .size = sizeof ops, .begin = sink_begin, .phase = sink_phase, .end = sink_end};
    struct rlhf_test_run run = {
        .dir = "/a/run", .phases = 3, .n_metrics = 1, .names = names, .values = values};
    struct seen s = {0};
    (void)state;
    assert_int_equal(rlhf_test_sink(&ops, &s, &run), RLHF_OK);
    assert_true(s.begun == -1 && s.last == 3 && s.value == 4.5 && s.ends == 1);
    assert_string_equal(s.why, "");
    run.done = 1;
    run.how = RLHF_RUN_FAILED;
    run.why = "a reason";
    s = (struct seen){.fail_at = 2};
    assert_int_equal(rlhf_test_sink(&ops, &s, &run), RLHF_E_IO); // but end() is called
    assert_true(s.begun == 1 && s.calls == 2 && s.last == 2 && s.ends == 1 + RLHF_RUN_FAILED);
    assert_string_equal(s.why, "a reason");
    s = (struct seen){.from = 3}; // the sink has phases 1 and 2
    assert_int_equal(rlhf_test_sink(&ops, &s, &run), RLHF_OK);
    assert_true(s.calls == 1 && s.last == 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_are_combined),
        cmocka_unit_test(wrong_metrics_are_failed_checks),
        cmocka_unit_test(services_know_who_calls),
        cmocka_unit_test(streams_know_what_is_left),
        cmocka_unit_test(lists_are_set),
        cmocka_unit_test(batches_have_what_is_asked_for),
        cmocka_unit_test(choices_are_checked),
        cmocka_unit_test(runs_are_played),
    };
    return cmocka_run_group_tests_name("test_kit_played", tests, NULL, NULL);
}
