// test_correction.c: compares the correction for rows that an older policy sampled with the float64
// reference of make_correction_vectors.py. Also tests how ppo, grpo and rloo use the correction.
#include "algos/fixture.h"

#include "common/correction.h"
#include "common/surrogate.h"
#include "support/numbers.h"

#include <math.h>
#include <rlhf/draft/iteration.h>
#include <string.h>

enum { C_ROWS = 6, C_TOKENS = 7, N = C_ROWS * C_TOKENS, N_CASES = 32 };

struct correction_metric {
    const char *name; // NULL ends the list
    double value;
};
struct correction_case {
    const char *level, *mode;
    double cap, dual;
    double weight[N], derivative[N];
    struct correction_metric metrics[16];
};

// The numbers of correction_vectors.json.
static double c_low, c_high, c_sampled[N], c_old[N], c_new[N], c_advantage[N];
static struct correction_case correction_cases[N_CASES];
static json_t *vectors;

static struct batch b;
static float sampled[MAX_TOKENS];

static void read_case(const json_t *from, struct correction_case *k) {
    const char *name;
    json_t *value;
    size_t n = 0;
    k->level = numbers_text(from, "level");
    k->mode = numbers_text(from, "mode");
    k->cap = numbers_one(from, "cap");
    k->dual = numbers_one(from, "dual");
    numbers_doubles(from, "weight", k->weight, N);
    numbers_doubles(from, "derivative", k->derivative, N);
    json_object_foreach(json_object_get(from, "metrics"), name, value) {
        assert_true(n + 1 < sizeof k->metrics / sizeof *k->metrics);
        k->metrics[n++] = (struct correction_metric){name, json_number_value(value)};
    }
    assert_true(n > 0);
}

static int setup(void **state) {
    (void)state;
    vectors = numbers_open("algos/correction_vectors.json");
    c_low = numbers_one(vectors, "low");
    c_high = numbers_one(vectors, "high");
    numbers_doubles(vectors, "sampled", c_sampled, N);
    numbers_doubles(vectors, "old", c_old, N);
    numbers_doubles(vectors, "new", c_new, N);
    numbers_doubles(vectors, "advantage", c_advantage, N);
    const json_t *cases = numbers_list(vectors, "cases", N_CASES);
    for (size_t i = 0; i < N_CASES; i++)
        read_case(json_array_get(cases, i), &correction_cases[i]);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    json_decref(vectors);
    return 0;
}

static struct rlhf__correction correction_of(const struct correction_case *k) {
    const int whole = strcmp(k->level, "sequence") == 0, masks = strcmp(k->mode, "mask") == 0;
    return (struct rlhf__correction){.level = whole ? RLHF__CORRECT_SEQUENCE : RLHF__CORRECT_TOKEN,
                                     .mode = masks ? RLHF__CORRECT_MASK : RLHF__CORRECT_TRUNCATE,
                                     .cap = k->cap};
}

// The log-ratio from which the weight of token t is computed.
static double log_ratio(const struct rlhf__correction *c, int t) {
    const int row = t / C_TOKENS * C_TOKENS;
    double sum = 0;
    if (c->level == RLHF__CORRECT_TOKEN) return c_old[t] - c_sampled[t];
    for (int k = row; k < row + C_TOKENS; k++)
        sum += c_old[k] - c_sampled[k];
    return sum;
}

// Compares the weights with the reference. Scaling each advantage by its weight must give the
// derivatives of the published objective.
static void weights_and_derivatives(void **state) {
    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        const struct correction_case *k = &correction_cases[i];
        const struct rlhf__correction c = correction_of(k);
        const struct rlhf__clip clip = {c_low, c_high, k->dual};
        for (int t = 0; t < N; t++) {
            int32_t high;
            int clipped;
            double d;
            const double w = rlhf__correction_weight(&c, log_ratio(&c, t), &high);
            const double u = exp(c_new[t] - c_old[t]);
            assert_near(w, k->weight[t], 1e-12, "weight");
            rlhf__surrogate(u, w * c_advantage[t], &clip, &d, &clipped);
            assert_near(d * u, k->derivative[t], 1e-12, "derivative");
        }
    }
}

// The rows of the reference, without prompts. All their numbers are exact in float.
static void reference_rows(void) {
    memset(&b, 0, sizeof b);
    b.n = C_ROWS;
    b.total = N;
    b.max_len = C_TOKENS;
    b.sampled = sampled;
    for (int i = 0; i < C_ROWS; i++) {
        b.offset[i + 1] = (i + 1) * C_TOKENS;
        b.group[i] = i / 2;
        b.finished[i] = i != 3;
        b.score[i] = (float)(i % 2);
    }
    for (int t = 0; t < N; t++) {
        b.old[t] = b.ref[t] = (float)c_old[t];
        b.logp[t] = (float)c_new[t];
        sampled[t] = (float)c_sampled[t];
    }
}

static rlhf_rollout rollout(void) {
    return (rlhf_rollout){.size = sizeof(rlhf_rollout),
                          .n = (uint32_t)b.n,
                          .total = (uint32_t)b.total,
                          .offset = b.offset,
                          .prompt_len = b.prompt_len,
                          .finished = b.finished,
                          .logp_old = b.old,
                          .logp_sampled = sampled};
}

// The weight that advantages() passed on for token t. `level` is the level of the correction.
static double carried(const char *level, int t) {
    return strcmp(level, "sequence") == 0 ? b.carry_row[t / C_TOKENS] : b.carry_token[t];
}

static double reported(const struct rlhf_test_host *host, const char *name) {
    for (uint32_t i = 0; i < host->n_metrics; i++)
        if (strcmp(host->metric[i].name, name) == 0) return host->metric[i].value;
    fail_msg("%s was not reported", name);
    return 0;
}

static void metrics(void **state) {
    (void)state;
    static struct rlhf_test_host host;
    for (int i = 0; i < N_CASES; i++) {
        const struct correction_case *k = &correction_cases[i];
        const struct rlhf__correction c = correction_of(k);
        struct rlhf__correction_sums sums = {0};
        int64_t excluded, want = 0;
        const int excludes = c.level == RLHF__CORRECT_SEQUENCE && c.mode == RLHF__CORRECT_MASK;
        uint32_t n = 0;
        reference_rows();
        const rlhf_rollout in = rollout();
        rlhf_advantages out = {.size = sizeof out, .use = b.use};
        if (c.level == RLHF__CORRECT_SEQUENCE) out.carry_row = b.carry_row;
        if (c.level == RLHF__CORRECT_TOKEN) out.carry_token = b.carry_token;
        rlhf_test_init(&host, 1);
        assert_int_equal(rlhf__correct(&host.table, &c, &in, &out, 0, &sums, &excluded), RLHF_OK);
        rlhf__correction_report(&host.table, &c, &sums);
        for (const struct correction_metric *m = k->metrics; m->name; m++, n++)
            assert_near(reported(&host, m->name), m->value, 1e-12, m->name);
        assert_int_equal(host.n_metrics, n); // no other metrics
        for (int t = 0; t < N; t++) {
            assert_near(carried(k->level, t), k->weight[t], 1e-12, "weight");
            const int left = excludes && k->weight[t] == 0;
            assert_int_equal(b.use[t / C_TOKENS], left ? RLHF_USE_EXCLUDED : RLHF_USE_TRAINS);
            want += left;
        }
        assert_int_equal(excluded, want);
    }
}

static void every_metric_is_documented(void **state) {
    (void)state;
    char path[4096], line[4096];
    snprintf(path, sizeof path, "%s/docs/metrics.md", getenv("RLHF_SOURCE_DIR"));
    for (int i = 0; i < N_CASES; i++)
        for (const struct correction_metric *m = correction_cases[i].metrics; m->name; m++) {
            FILE *f = fopen(path, "re");
            int found = 0;
            assert_non_null(f);
            while (fgets(line, sizeof line, f))
                found |= strstr(line, m->name) != NULL;
            fclose(f);
            if (!found) fail_msg("docs/metrics.md does not define %s", m->name);
        }
}

// ---- in the algorithms ----

// Opens the algorithm, plans for a run that samples `ahead`, and computes the advantages.
static void advantages(struct algo *a, const char *file, const char *options, uint32_t ahead) {
    assert_int_equal(algo_try(a, file, options), RLHF_OK);
    const rlhf_run_info info = {.size = sizeof info,
                                .phases = 10,
                                .batch_size = (uint32_t)b.n,
                                .max_new_tokens = C_TOKENS,
                                .temperature = 1,
                                .ahead = ahead};
    a->plan = (rlhf_plan){.size = sizeof a->plan};
    assert_int_equal(a->ops->plan(a->self, &info, &a->plan), RLHF_OK);
    assert_true(a->plan.flags & RLHF_PLAN_STALE);
    assert_int_equal(batch_advantages(a, &b), RLHF_OK);
}

static const struct {
    const char *file, *options;
} algos[] = {{"ppo.so", "advantage=sequence,kl_coef=0"},
             {"ppo.so", "whiten_advantages=on,kl_coef=0.1"},
             {"grpo.so", "group_size=2,loss=cispo"},
             {"grpo.so", "group_size=2"},
             {"grpo.so", "group_size=2,loss=gmpo"},
             {"grpo_iterative.so", "group_size=2"},
             {"rloo.so", "group_size=2"},
             {"rloo.so", "group_size=2,ratio=token"}};

static rlhf_status no_iteration(const rlhf_host *h, const rlhf_reward_update *u,
                                rlhf_reward_update_report *r) {
    (void)h;
    (void)u;
    (void)r;
    return RLHF_E_UNSUPPORTED;
}

// Advantages are the same with and without a correction. The weights reach loss() as exact numbers,
// and its derivatives are those of advantages times weights.
static void weights_reach_the_loss(void **state) {
    (void)state;
    static float plain[MAX_TOKENS], corrected[MAX_TOKENS];
    char options[256];
    for (size_t i = 0; i < sizeof algos / sizeof *algos; i++)
        for (int j = 0; j < N_CASES; j++) {
            const struct correction_case *k = &correction_cases[j];
            const int gmpo = strstr(algos[i].options, "gmpo") != NULL;
            struct algo a;
            reference_rows();
            snprintf(options, sizeof options, "%s,correction=none", algos[i].options);
            advantages(&a, algos[i].file, options, 1);
            assert_false(a.plan.flags & RLHF_PLAN_RECOMPUTE_LOGP);
            assert_int_equal(a.plan.carry_rows + a.plan.carry_tokens, 0);
            algo_close(&a);
            memcpy(plain, b.advantage, sizeof plain);
            snprintf(options, sizeof options,
                     "%s,correction=%s,correction_mode=%s,correction_cap=%g", algos[i].options,
                     k->level, k->mode, k->cap);
            advantages(&a, algos[i].file, options, 0);
            assert_true(a.plan.flags & RLHF_PLAN_RECOMPUTE_LOGP);
            assert_memory_equal(b.advantage, plain, sizeof plain);
            for (int t = 0; t < N; t++)
                assert_near(carried(k->level, t), k->weight[t], 1e-12, algos[i].file);
            batch_loss(&a, &b, 0, b.n, 0);
            memcpy(corrected, b.d_logp, sizeof corrected);
            if (gmpo && strcmp(k->level, "token") == 0) { // one weight per response
                algo_close(&a);
                continue;
            }
            // the same loss, with the weights multiplied into the advantages instead
            for (int t = 0; t < N; t++)
                b.advantage[t] = (float)(carried(k->level, t) * (double)b.advantage[t]);
            for (int r = 0; r < C_ROWS; r++)
                b.carry_row[r] = 1;
            for (int t = 0; t < N; t++)
                b.carry_token[t] = 1;
            batch_loss(&a, &b, 0, b.n, 0);
            algo_close(&a);
            assert_memory_equal(b.d_logp, corrected, sizeof corrected);
        }
}

// GMPO with a weight per token.
static void gmpo_has_one_weight(void **state) {
    (void)state;
    const json_t *cases = json_object_get(vectors, "gmpo");
    char options[256];
    double derivative[N];
    assert_int_equal(json_array_size(cases), 5);
    for (size_t i = 0; i < 5; i++) {
        const json_t *k = json_array_get(cases, i);
        struct algo a;
        reference_rows();
        snprintf(options, sizeof options,
                 "group_size=2,loss=gmpo,kl_placement=none,clip_range=%g,clip_range_high=%g,"
                 "correction=token,correction_mode=%s,correction_cap=%g",
                 c_low, c_high, numbers_text(k, "mode"), numbers_one(k, "cap"));
        advantages(&a, "grpo.so", options, 0);
        memset(b.use, 0, sizeof b.use);
        for (int t = 0; t < N; t++)
            b.advantage[t] = (float)c_advantage[t / C_TOKENS * C_TOKENS];
        assert_near(batch_loss(&a, &b, 0, b.n, 0), numbers_one(k, "loss"), 1e-7, "loss");
        numbers_doubles(k, "derivative", derivative, N);
        for (int t = 0; t < N; t++)
            assert_near((double)b.d_logp[t], derivative[t], 1e-7, "derivative");
        algo_close(&a);
    }
}

// Rows that the same policy sampled have weight 1. So the correction changes none of their bits.
static void nothing_changes_without_staleness(void **state) {
    (void)state;
    static struct batch plain;
    struct algo a;
    char options[256];
    for (size_t i = 0; i < sizeof algos / sizeof *algos; i++) {
        batch_random(&b, 8, 29);
        b.sampled = b.old;
        snprintf(options, sizeof options, "%s,correction=none", algos[i].options);
        advantages(&a, algos[i].file, options, 0);
        algo_close(&a);
        plain = b;
        for (int k = 0; k < 2; k++) {
            snprintf(options, sizeof options, "%s,correction=sequence,correction_mode=%s",
                     algos[i].options, k ? "mask" : "truncate");
            advantages(&a, algos[i].file, options, 1);
            algo_close(&a);
            assert_memory_equal(b.advantage, plain.advantage, sizeof b.advantage);
            assert_memory_equal(b.returns, plain.returns, sizeof b.returns);
            assert_memory_equal(b.use, plain.use, sizeof b.use);
            for (int r = 0; r < b.n; r++)
                assert_true(b.carry_row[r] == (b.offset[r + 1] > b.offset[r] + b.prompt_len[r]));
        }
    }
}

// By default, an algorithm corrects rows only if the run samples ahead. The weights then have the
// level (token or sequence) of the algorithm's ratio.
static void automatic_level(void **state) {
    (void)state;
    static const char *const level[] = {"sequence", "token", "token",    "token",
                                        "sequence", "token", "sequence", "token"};
    static struct batch first;
    char options[256];
    struct algo a;
    for (size_t i = 0; i < sizeof algos / sizeof *algos; i++) {
        const char *own = i ? level[i] : "token"; // ppo has one ratio per token
        reference_rows();
        advantages(&a, algos[i].file, algos[i].options, 1);
        assert_true(a.plan.flags & RLHF_PLAN_RECOMPUTE_LOGP);
        algo_close(&a);
        first = b;
        snprintf(options, sizeof options, "%s,correction=%s", algos[i].options, own);
        advantages(&a, algos[i].file, options, 0);
        algo_close(&a);
        assert_memory_equal(b.carry_row, first.carry_row, sizeof b.carry_row);
        assert_memory_equal(b.carry_token, first.carry_token, sizeof b.carry_token);
        advantages(&a, algos[i].file, algos[i].options, 0);
        assert_false(a.plan.flags & RLHF_PLAN_RECOMPUTE_LOGP);
        assert_int_equal(a.plan.carry_rows + a.plan.carry_tokens, 0);
        algo_close(&a);
    }
}

// A row that the correction leaves out does not count in any token total. The derivatives of the
// other rows are as if that row were missing.
static void excluded_rows_are_not_counted(void **state) {
    (void)state;
    const char *how = "group_size=2,loss=dapo,kl_placement=none,advantage_scale=none,"
                      "correction=sequence,correction_mode=mask,correction_cap=1.05,"
                      "mask_truncated=true";
    struct algo a;
    reference_rows();
    advantages(&a, "grpo.so", how, 0);
    int tokens = 0;
    for (int i = 0; i < b.n; i++)
        tokens += b.use[i] == RLHF_USE_EXCLUDED ? 0 : C_TOKENS;
    assert_in_range(tokens, C_TOKENS, N - 2 * C_TOKENS);
    batch_loss(&a, &b, 0, b.n, 0);
    for (int t = 0; t < N; t++) {
        if (b.use[t / C_TOKENS] == RLHF_USE_EXCLUDED) continue;
        const double u = exp((double)b.logp[t] - (double)b.old[t]);
        const struct rlhf__clip clip = {0.2, 0.2, 0};
        double d;
        int clipped;
        rlhf__surrogate(u, b.carry_row[t / C_TOKENS] * (double)b.advantage[t], &clip, &d, &clipped);
        assert_near((double)b.d_logp[t], d * u / tokens, 1e-6, "derivative");
    }
    algo_close(&a);
}

// Trains one step on the batch, ends the phase and closes the algorithm.
static double masked_ratio(struct algo *a) {
    batch_loss(a, &b, 0, b.n, 0);
    assert_int_equal(algo_step_end(a, 0, 0), 0);
    assert_int_equal(algo_phase_end(a, 0), RLHF_OK);
    const double ratio = metric(a, "policy/masked_ratio");
    algo_close(a);
    return ratio;
}

// policy/masked_ratio counts each row without loss once: rows of groups without advantage, also if
// the correction leaves them out, and truncated rows.
static void masked_rows_are_counted_once(void **state) {
    (void)state;
    const char *how = "group_size=2,mask_truncated=true,correction=sequence,correction_mode=mask,"
                      "correction_cap=1.05";
    char options[256];
    struct algo a;
    int excluded = 0;
    reference_rows();
    for (int i = 2; i < C_ROWS; i++) // row 3 is truncated
        b.score[i] = 1;
    advantages(&a, "grpo.so", how, 0);
    assert_near(masked_ratio(&a), 1.0 / C_ROWS, 1e-12, "truncated");
    for (int i = 2; i < C_ROWS; i++)
        excluded += b.finished[i] && b.use[i] == RLHF_USE_EXCLUDED;
    assert_true(excluded > 0);
    snprintf(options, sizeof options, "%s,mask_zero_advantage_groups=true", how);
    advantages(&a, "grpo.so", options, 0);
    assert_near(masked_ratio(&a), 4.0 / C_ROWS, 1e-12, "masked");
}

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *file, *options, *says;
    } cases[] = {{"ppo.so", "correction_cap=0.5", "correction_cap is 0.5; it must be 0"},
                 {"rloo.so", "correction_cap=0.99", "it must be 0 (no cap) or at least 1"}};
    struct algo a;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(algo_try(&a, cases[i].file, cases[i].options), RLHF_E_INVALID);
        assert_non_null(strstr(a.host->fail_text, cases[i].says));
    }
    const rlhf_run_info info = {.size = sizeof info, .phases = 1, .batch_size = 8};
    rlhf_plan plan = {.size = sizeof plan};
    assert_int_equal(algo_try(&a, "grpo.so",
                              "loss=dapo,advantage_scope=minibatch,minibatches=2,"
                              "correction=sequence,correction_mode=mask"),
                     RLHF_OK);
    assert_int_equal(a.ops->plan(a.self, &info, &plan), RLHF_E_INVALID);
    assert_non_null(strstr(a.host->fail_text, "scope minibatch"));
    algo_close(&a);
    reference_rows();
    algo_open(&a, "grpo.so", "group_size=2,correction=token", b.n);
    sampled[9] = NAN;
    assert_int_equal(batch_advantages(&a, &b), RLHF_E_NUMERIC);
    assert_non_null(strstr(a.host->fail_text, "the correction of token 2 of sequence 1"));
    algo_close(&a);
}

int main(void) {
    static const rlhf_iteration_service iteration = {.size = sizeof iteration,
                                                     .reward_update = no_iteration};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_and_derivatives),
        cmocka_unit_test(metrics),
        cmocka_unit_test(every_metric_is_documented),
        cmocka_unit_test(weights_reach_the_loss),
        cmocka_unit_test(gmpo_has_one_weight),
        cmocka_unit_test(nothing_changes_without_staleness),
        cmocka_unit_test(automatic_level),
        cmocka_unit_test(excluded_rows_are_not_counted),
        cmocka_unit_test(masked_rows_are_counted_once),
        cmocka_unit_test(refusals),
    };
    algo_offer = (struct rlhf_test_service){RLHF_SVC_ITERATION, &iteration};
    return cmocka_run_group_tests(tests, setup, teardown);
}
