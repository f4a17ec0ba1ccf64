// test_formulas.c: functions that depend only on numbers: the schedule, mixing, early stopping,
// microbatch slices, and distinct n-grams.
#include "support/check.h"

#include "batch/diversity.h"
#include "learn/optim.h"
#include "learn/schedule.h"
#include "run/early_stop.h"
#include "sample/mixing.h"
#include "sample/rollout.h"

#include <math.h>
#include <string.h>

static void close_to(double got, double want, double eps) {
    if (!(fabs(got - want) <= eps)) fail_msg("got %.9g, expected %.9g", got, want);
}

// ---- schedule ----

static void schedule_warms_up_and_decays(void **state) {
    (void)state;
    struct rlhf__optim_config c = {
        .schedule = RLHF__SCHEDULE_LINEAR, .warmup = 4, .final_scale = 0.2};
    close_to(rlhf__schedule_factor(&c, 0, 104), 0.25, 0);
    close_to(rlhf__schedule_factor(&c, 3, 104), 1, 0);
    close_to(rlhf__schedule_factor(&c, 4, 104), 1, 0);
    close_to(rlhf__schedule_factor(&c, 54, 104), 0.6, 1e-15);
    close_to(rlhf__schedule_factor(&c, 104, 104), 0.2, 1e-15);
    close_to(rlhf__schedule_factor(&c, 500, 104), 0.2, 1e-15);
    c.schedule = RLHF__SCHEDULE_COSINE;
    close_to(rlhf__schedule_factor(&c, 54, 104), 0.6, 1e-15);
    close_to(rlhf__schedule_factor(&c, 29, 104), 0.2 + 0.8 * 0.5 * (1 + cos(M_PI / 4)), 1e-15);
    c.schedule = RLHF__SCHEDULE_CONSTANT;
    close_to(rlhf__schedule_factor(&c, 90, 104), 1, 0);
    // The learning rate falls linearly to 0 from the first phase on, as in the 2019 code: 1 -
    // update / total.
    c = (struct rlhf__optim_config){.schedule = RLHF__SCHEDULE_LINEAR};
    close_to(rlhf__schedule_factor(&c, 0, 10), 1, 0);
    close_to(rlhf__schedule_factor(&c, 9, 10), 0.1, 1e-15);
}

// The warm-up begins at 0, as in transformers and in torch's LambdaLR(step / warmup).
static void schedule_warms_up_from_zero(void **state) {
    (void)state;
    struct rlhf__optim_config c = {.schedule = RLHF__SCHEDULE_LINEAR,
                                   .warmup = 4,
                                   .warmup_from = RLHF__WARMUP_FROM_ZERO,
                                   .final_scale = 0.2};
    close_to(rlhf__schedule_factor(&c, 0, 104), 0, 0);
    close_to(rlhf__schedule_factor(&c, 3, 104), 0.75, 0);
    close_to(rlhf__schedule_factor(&c, 4, 104), 1, 0);
    close_to(rlhf__schedule_factor(&c, 54, 104), 0.6, 1e-15);
}

// ---- mixing ----

// Mixes one or two rewards of four rows with two response tokens each. If `per_token` is 0, the
// whole reward is at the end. If it is 1, half of the reward is at each of the two response tokens.
// `score` receives each row's reward.
static void mix_paid(struct rlhf__config *c, const float *raw, const uint8_t *keep,
                     const uint8_t *finished, const uint8_t *no_period, int per_token,
                     float *score) {
    struct rlhf__rows e = {0};
    struct rlhf__reward_parts pay[2] = {{0}};
    float seq[8] = {0}, row[8] = {0}, token[2][12] = {{0}};
    assert_int_equal(rlhf__rows_init(&e, 4, 12, NULL), RLHF_OK);
    for (int32_t i = 0; i < 4; i++) {
        e.offset[i + 1] = 3 * (i + 1);
        e.prompt_len[i] = 1;
        e.finished[i] = finished[i];
    }
    for (size_t k = 0; k < c->n_reward; k++) {
        pay[k] = (struct rlhf__reward_parts){seq + 4 * k, per_token ? token[k] : NULL, row + 4 * k,
                                             NULL};
        for (size_t i = 0; i < 4; i++) {
            row[4 * k + i] = raw[4 * k + i];
            if (!per_token) seq[4 * k + i] = raw[4 * k + i];
            if (per_token) token[k][3 * i + 1] = token[k][3 * i + 2] = raw[4 * k + i] / 2;
        }
    }
    rlhf__mix(c, pay, keep, NULL, no_period, &e);
    for (uint32_t i = 0; i < 4; i++) {
        const float *t = e.token[RLHF__TOKEN_REWARD] + 3 * i;
        close_to((double)t[0], 0, 0);
        close_to((double)t[1], (double)t[2], 0);
        close_to((double)e.reward[i], (double)e.score[i] + (double)t[1] + (double)t[2], 1e-5);
    }
    memcpy(score, e.reward, 4 * sizeof *score);
    rlhf__rows_finish(&e);
}

static void mix(struct rlhf__config *c, const float *raw, const uint8_t *finished,
                const uint8_t *no_period, float *score) {
    static const uint8_t keep[4] = {1, 1, 1, 1};
    mix_paid(c, raw, keep, finished, no_period, 0, score);
}

static void rewards_are_weighted_normalized_and_clipped(void **state) {
    (void)state;
    struct rlhf__plugin_config reward[2] = {{.weight = 2}, {.weight = -0.5}};
    struct rlhf__config c = {.reward = reward, .n_reward = 2};
    const float raw[8] = {1, 2, 3, 6, 4, 4, 0, 0};
    const uint8_t yes[4] = {1, 1, 1, 1}, no[4] = {0};
    float score[4];
    mix(&c, raw, yes, no, score);
    close_to((double)score[0], 0, 0);
    close_to((double)score[3], 12, 0);
    c.mixing.clip = 5;
    mix(&c, raw, yes, no, score);
    close_to((double)score[3], 5, 0);
    c.mixing.clip = 0;
    c.mixing.normalize = RLHF__NORMALIZE_BEFORE;
    mix(&c, raw, yes, no, score);
    double std = sqrt(3.5); // of 1 2 3 6, biased; the second reward has mean 2, std 2
    close_to((double)score[0], 2 * (1 - 3) / (std + 1e-5) - 0.5 * (4 - 2) / (2 + 1e-5), 1e-6);
    c.mixing.normalize = RLHF__NORMALIZE_AFTER;
    mix(&c, raw, yes, no, score);
    // Sums 0 2 6 12: mean 5, biased variance 21.
    close_to((double)score[2], 1 / (sqrt(21) + 1e-5), 1e-6);
}

static void penalties_come_last(void **state) {
    (void)state;
    struct rlhf__plugin_config reward[1] = {{.weight = 1}};
    struct rlhf__config c = {.reward = reward, .n_reward = 1};
    const float raw[4] = {1, 2, 3, 4};
    const uint8_t finished[4] = {1, 0, 1, 0}, no_period[4] = {0, 0, 1, 1};
    float score[4];
    c.response =
        (struct rlhf__response_config){.truncate = RLHF__TRUNCATE_PERIOD, .period_penalty = -1};
    mix(&c, raw, finished, no_period, score);
    const float a[4] = {1, 2, -1, -1};
    assert_memory_equal(score, a, sizeof a);
    c.response.non_stop = RLHF__NON_STOP_REPLACE;
    c.response.non_stop_penalty = -10;
    mix(&c, raw, finished, no_period, score);
    const float b[4] = {1, -10, -1, -10};
    assert_memory_equal(score, b, sizeof b);
    c.response.non_stop = RLHF__NON_STOP_SUBTRACT;
    c.response.non_stop_penalty = 0.5;
    mix(&c, raw, finished, no_period, score);
    const float d[4] = {1, 1.5f, -1, -1.5f};
    assert_memory_equal(score, d, sizeof d);
    c.response.truncate = RLHF__TRUNCATE_NONE; // then the period rule does not apply
    mix(&c, raw, finished, no_period, score);
    close_to((double)score[2], 3, 0);
}

// The row's reward is the same in both forms: given at its end or token by token.
static void token_rewards_are_part_of_the_row(void **state) {
    (void)state;
    struct rlhf__plugin_config reward[2] = {{.weight = 2}, {.weight = -0.5}};
    const float raw[8] = {1, 2, 3, 6, 4, 4, 0, 0};
    const uint8_t keep[4] = {1, 1, 0, 1}, finished[4] = {1, 0, 1, 1}, no_period[4] = {0, 0, 0, 1};
    for (int k = 0; k < 36; k++) {
        struct rlhf__config c = {.reward = reward, .n_reward = 2};
        c.mixing.normalize = k % 3;
        c.mixing.clip = k / 3 % 2;
        c.response.truncate = k / 6 % 2 ? RLHF__TRUNCATE_PERIOD : RLHF__TRUNCATE_NONE;
        c.response.period_penalty = -3;
        c.response.non_stop = k / 12;
        c.response.non_stop_penalty = 2;
        float end[4], by_token[4];
        mix_paid(&c, raw, keep, finished, no_period, 0, end);
        mix_paid(&c, raw, keep, finished, no_period, 1, by_token);
        for (int i = 0; i < 4; i++)
            close_to((double)by_token[i], (double)end[i], 1e-5);
        close_to((double)end[2], 0, 0);
    }
}

static void rewards_without_spread_normalize_to_nothing(void **state) {
    (void)state;
    struct rlhf__plugin_config reward[1] = {{.weight = 1}};
    const float raw[4] = {0.1f, 0.1f, 0.1f, 0.1f};
    const uint8_t yes[4] = {1, 1, 1, 1}, no[4] = {0};
    for (int32_t k = 0; k < 4; k++) {
        struct rlhf__config c = {.reward = reward, .n_reward = 1};
        c.mixing.normalize = k % 2 ? RLHF__NORMALIZE_BEFORE : RLHF__NORMALIZE_AFTER;
        float score[4];
        mix_paid(&c, raw, yes, yes, no, k / 2, score);
        for (int i = 0; i < 4; i++)
            close_to((double)score[i], 0, 0);
    }
}

static void dropped_rows_count_in_no_mean(void **state) {
    (void)state;
    const float x[4] = {1, 100, 3, 5};
    const uint8_t keep[4] = {1, 0, 1, 1};
    double mean, std;
    rlhf__mean_std(x, keep, NULL, 4, &mean, &std);
    close_to(mean, 3, 0);
    close_to(std, sqrt(8.0 / 3), 1e-15);
}

// A row without a value counts in neither mean nor deviation of its reward, and gets 0 from it.
static void missing_rewards_count_in_no_mean(void **state) {
    (void)state;
    struct rlhf__plugin_config reward[2] = {{.weight = 1}, {.weight = 1}};
    struct rlhf__config c = {.reward = reward, .n_reward = 2};
    float a[4] = {5, 5.5F, 0, 0}, b[4] = {0, 0, 0.25F, 0};
    uint8_t no_a[4] = {0, 0, 1, 1}, no_b[4] = {1, 1, 0, 1}, unpaid[4] = {0, 0, 0, 1};
    const uint8_t keep[4] = {1, 1, 1, 1}, no[4] = {0};
    const struct rlhf__reward_parts parts[2] = {{a, NULL, a, no_a}, {b, NULL, b, no_b}};
    struct rlhf__rows e = {0};
    assert_int_equal(rlhf__rows_init(&e, 4, 4, NULL), RLHF_OK);
    for (int32_t i = 0; i < 4; i++) {
        e.offset[i + 1] = i + 1;
        e.prompt_len[i] = 1;
    }
    c.mixing.normalize = RLHF__NORMALIZE_BEFORE;
    rlhf__mix(&c, parts, keep, unpaid, no, &e);
    const double one = 0.25 / (0.25 + 1e-5);
    const double before[4] = {-one, one, 0, 0}; // b has one value, and so no deviation
    for (int i = 0; i < 4; i++)
        close_to((double)e.reward[i], before[i], 1e-6);
    c.mixing.normalize = RLHF__NORMALIZE_AFTER;
    rlhf__mix(&c, parts, keep, unpaid, no, &e);
    const double mean = 10.75 / 3;
    const double std = sqrt((25 + 30.25 + 0.0625) / 3 - mean * mean) + 1e-5;
    const double after[4] = {(5 - mean) / std, (5.5 - mean) / std, (0.25 - mean) / std, 0};
    for (int i = 0; i < 4; i++)
        close_to((double)e.reward[i], after[i], 1e-6);
    rlhf__rows_finish(&e);
}

// ---- early stopping ----

// Averages the newest `window` values. If there are fewer values, averages them all.
static void early_stop_averages_what_was_seen(void **state) {
    (void)state;
    struct rlhf__early_stop_config c = {.kl = 2, .patience = 2, .window = 20};
    struct rlhf__early_stop s;
    char why[160] = "";
    assert_int_equal(rlhf__early_stop_init(&s, &c, NULL), RLHF_OK);
    assert_int_equal(rlhf__early_stop_offer(&s, RLHF__EARLY_STOP_KL, 0, why), 0);
    assert_int_equal(rlhf__early_stop_offer(&s, RLHF__EARLY_STOP_KL, 5, why), 0); // mean 2.5
    assert_int_equal(rlhf__early_stop_offer(&s, RLHF__EARLY_STOP_KL, 4, why), 1); // mean 3
    assert_string_equal(why, "the mean sequence KL 3 is above early_stop.kl 2");
    rlhf__early_stop_finish(&s);
}

static rlhf_status left(struct rlhf__early_stop *s, int64_t phases, char text[256]) {
    struct rlhf__error err = {0, ""};
    rlhf_status st = rlhf__early_stop_check_left(s, phases, &err);
    snprintf(text, 256, "%.255s", err.text);
    return st;
}

static void early_stop_that_cannot_stop_is_refused(void **state) {
    (void)state;
    struct rlhf__early_stop_config c = {.kl = 2, .patience = 3, .window = 4};
    struct rlhf__early_stop s;
    char text[256], why[160];
    assert_int_equal(rlhf__early_stop_init(&s, &c, NULL), RLHF_OK);
    assert_int_equal(left(&s, 4, text), RLHF_OK);
    assert_int_equal(left(&s, 3, text), RLHF_E_INVALID);
    assert_non_null(strstr(text, "early_stop.window=4 phases, and 3 phases are left"));
    assert_int_equal(left(&s, 2, text), RLHF_E_INVALID);
    assert_non_null(strstr(text, "early_stop.patience is 3 and 2 phases are left"));
    // A resumed run continues to count. One phase was above the limit before, so two more reach the
    // patience of 3.
    rlhf__early_stop_offer(&s, RLHF__EARLY_STOP_KL, 1, why);
    rlhf__early_stop_offer(&s, RLHF__EARLY_STOP_KL, 9, why);
    assert_int_equal(left(&s, 2, text), RLHF_OK);
    assert_int_equal(left(&s, 1, text), RLHF_E_INVALID);
    // All values are accepted if 0 phases are left, or if there is no limit.
    assert_int_equal(left(&s, 0, text), RLHF_OK);
    c.kl = 0;
    assert_int_equal(left(&s, 1, text), RLHF_OK);
    rlhf__early_stop_finish(&s);
}

static void early_stop_waits_for_patience(void **state) {
    (void)state;
    struct rlhf__early_stop_config c = {.kl = 2, .patience = 2, .window = 3};
    struct rlhf__early_stop s;
    char why[160] = "";
    assert_int_equal(rlhf__early_stop_init(&s, &c, NULL), RLHF_OK);
    const double kl[] = {3, 0, 0, 0, 9, 0, 9, 0};
    int stopped = -1;
    for (int i = 0; i < 8 && stopped < 0; i++)
        if (rlhf__early_stop_offer(&s, RLHF__EARLY_STOP_KL, kl[i], why)) stopped = i;
    // The means are 3, 1.5, 1, 0, 3 and 3. So the sixth phase is the second one in a row above the
    // limit.
    assert_int_equal(stopped, 5);
    assert_non_null(strstr(why, "early_stop.kl"));
    rlhf__early_stop_finish(&s);
}

static int offer_reward(struct rlhf__early_stop *s, double reward) {
    char why[160];
    return rlhf__early_stop_offer(s, RLHF__EARLY_STOP_REWARD, reward, why);
}

// While the window contains a KL that is not finite, the window's mean is beyond every limit.
// Saving and loading the state does not change that.
static void early_stop_knows_infinity(void **state) {
    (void)state;
    struct rlhf__early_stop_config c = {.kl = 100, .patience = 3, .window = 3};
    struct rlhf__early_stop s, again;
    char why[160] = "";
    const double kl[] = {1, INFINITY, 1, 1, NAN, 1, 1, 1}; // means: 1 inf inf inf
    int stopped = -1;
    rlhf__early_stop_init(&s, &c, NULL);
    for (int i = 0; i < 8 && stopped < 0; i++) {
        if (rlhf__early_stop_offer(&s, RLHF__EARLY_STOP_KL, kl[i], why)) stopped = i;
        json_t *v = rlhf__early_stop_save(&s);
        assert_non_null(v);
        rlhf__early_stop_init(&again, &c, NULL);
        assert_int_equal(rlhf__early_stop_load(&again, v, NULL), RLHF_OK);
        json_decref(v);
        rlhf__early_stop_finish(&s);
        s = again;
    }
    assert_int_equal(stopped, 3); // the third phase in a row
    rlhf__early_stop_finish(&s);
}

static void early_stop_survives_a_checkpoint(void **state) {
    (void)state;
    struct rlhf__early_stop_config c = {.reward = 1, .patience = 3, .window = 2};
    struct rlhf__early_stop whole, half, rest;
    rlhf__early_stop_init(&whole, &c, NULL);
    rlhf__early_stop_init(&half, &c, NULL);
    rlhf__early_stop_init(&rest, &c, NULL);
    int at = -1, at_rest = -1;
    for (int i = 0; i < 9; i++) {
        double reward = i < 2 ? 0 : 3;
        if (offer_reward(&whole, reward) && at < 0) at = i;
        if (i < 4) offer_reward(&half, reward);
        if (i == 3) {
            json_t *v = rlhf__early_stop_save(&half);
            assert_int_equal(rlhf__early_stop_load(&rest, v, NULL), RLHF_OK);
            json_decref(v);
        }
        if (i > 3 && offer_reward(&rest, reward) && at_rest < 0) at_rest = i;
    }
    assert_int_equal(at, 4);
    assert_int_equal(at_rest, at);
    rlhf__early_stop_finish(&whole);
    rlhf__early_stop_finish(&half);
    rlhf__early_stop_finish(&rest);
}

// ---- rows ----

static void slices_hold_whole_rows(void **state) {
    (void)state;
    struct rlhf__rows e = {0};
    assert_int_equal(rlhf__rows_init(&e, 4, 20, NULL), RLHF_OK);
    const int32_t offset[5] = {0, 9, 12, 15, 20};
    memcpy(e.offset, offset, sizeof offset);
    for (int32_t i = 0; i < 20; i++)
        e.ids[i] = i;
    for (int i = 0; i < 4; i++)
        e.prompt_len[i] = 1;
    assert_int_equal(rlhf__rows_slice_end(&e, 0, 8, 0), 1); // one row although it is too long
    assert_int_equal(rlhf__rows_slice_end(&e, 1, 6, 0), 3);
    assert_int_equal(rlhf__rows_slice_end(&e, 1, 0, 0), 4);
    assert_int_equal(rlhf__rows_response_tokens(&e, 1, 4), 8);
    assert_null(rlhf__rows_support(&e, 2));
    assert_int_equal(rlhf__rows_add_support(&e, 40, NULL), RLHF_OK); // two words a token
    for (uint32_t w = 0; w < 2 * 16; w++)
        e.support[w] = w;
    assert_int_equal(*rlhf__rows_support(&e, 2), 2 * (8 + 2));
    const uint32_t pick[2] = {3, 1};
    struct rlhf__rows p = {0};
    assert_int_equal(rlhf__rows_pick(&p, &e, pick, 2, NULL), RLHF_OK);
    assert_int_equal(p.total, 8);
    assert_int_equal(p.ids[0], 15);
    assert_int_equal(p.ids[5], 9);
    const uint32_t kept[12] = {24, 25, 26, 27, 28, 29, 30, 31, 16, 17, 18, 19};
    assert_memory_equal(p.support, kept, sizeof kept); // 4 tokens of row 3, 2 of row 1
    int32_t rebased[3];
    rlhf_batch b = rlhf__rows_batch(&p, 1, 2, rebased);
    assert_int_equal(b.total, 3);
    assert_int_equal(b.ids[0], 9);
    assert_int_equal(b.offset[1], 3);
    rlhf__rows_finish(&p);
    rlhf__rows_finish(&e);
}

static void distinct_counts_ngrams_inside_rows(void **state) {
    (void)state;
    const int32_t ids[] = {1, 2, 3, 1, 2, 3, 9, 9, 1, 2, 3};
    const int32_t begin[] = {0, 6, 8}, end[] = {6, 8, 11};
    double d;
    // The trigrams of the rows are 123 231 312 123, none, and 123. So 3 of 5 are distinct.
    assert_int_equal(rlhf__distinct_n(ids, begin, end, 3, 3, &d, NULL), RLHF_OK);
    close_to(d, 0.6, 1e-15);
    assert_int_equal(rlhf__distinct_n(ids, begin, begin, 3, 3, &d, NULL), RLHF_OK);
    close_to(d, 1, 0);
}

static void settings_reach_the_distribution(void **state) {
    const struct rlhf__sampling_config s = {
        .temperature = 2, .top_p = 0.75, .top_k = 3, .min_p = 0.25};
    const rlhf_dist d = rlhf__sampling_dist(&s);
    (void)state;
    assert_true(d.top_p == 0.75 && d.top_k == 3 && d.min_p == 0.25 && !d.greedy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedule_warms_up_and_decays),
        cmocka_unit_test(schedule_warms_up_from_zero),
        cmocka_unit_test(rewards_are_weighted_normalized_and_clipped),
        cmocka_unit_test(penalties_come_last),
        cmocka_unit_test(token_rewards_are_part_of_the_row),
        cmocka_unit_test(rewards_without_spread_normalize_to_nothing),
        cmocka_unit_test(dropped_rows_count_in_no_mean),
        cmocka_unit_test(missing_rewards_count_in_no_mean),
        cmocka_unit_test(early_stop_averages_what_was_seen),
        cmocka_unit_test(early_stop_that_cannot_stop_is_refused),
        cmocka_unit_test(early_stop_waits_for_patience),
        cmocka_unit_test(early_stop_knows_infinity),
        cmocka_unit_test(early_stop_survives_a_checkpoint),
        cmocka_unit_test(slices_hold_whole_rows),
        cmocka_unit_test(settings_reach_the_distribution),
        cmocka_unit_test(distinct_counts_ngrams_inside_rows),
    };
    return cmocka_run_group_tests_name("formulas", tests, NULL, NULL);
}
