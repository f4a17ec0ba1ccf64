// test_reward_head.c: pooling, its derivative, and the fit of gain and bias, compared with cases
// computed by hand. Also tests the fields of config.json that store them.
#include "support/check.h"

#include "model/reward_model.h"
#include <rlhf/test.h>

#include <math.h>
#include <string.h>

static void close_to(double got, double want, double eps) {
    if (!(fabs(got - want) <= eps)) fail_msg("got %.9g, expected %.9g", got, want);
}

// Three rows: prompt 2 + response 3, prompt 1 + response 1, prompt 3 and no response.
static const int32_t offset[4] = {0, 5, 7, 10}, prompt_len[3] = {2, 1, 3};
static const float raw[10] = {99, 99, 1, 2, 6, 99, -4, 99, 99, 99};

static void pooling_mean_and_last(void **state) {
    (void)state;
    struct rlhf__reward_head h = {RLHF_POOL_MEAN, 2, 0.5};
    float seq[3];
    rlhf__reward_pool(&h, 3, offset, prompt_len, raw, seq);
    close_to((double)seq[0], 2 * 3 + 0.5, 0); // (1 + 2 + 6) / 3
    close_to((double)seq[1], 2 * -4 + 0.5, 0);
    close_to((double)seq[2], 0.5, 0);
    h.pooling = RLHF_POOL_LAST;
    rlhf__reward_pool(&h, 3, offset, prompt_len, raw, seq);
    close_to((double)seq[0], 2 * 6 + 0.5, 0);
    close_to((double)seq[1], 2 * -4 + 0.5, 0);
}

static void derivative_of_pooling(void **state) {
    (void)state;
    struct rlhf__reward_head h = {RLHF_POOL_MEAN, 2, 0.5};
    const float d_seq[3] = {3, -1, 7};
    float d[10] = {0};
    d[3] = 1; // the result is added to existing values
    rlhf__reward_pool_bwd(&h, 3, offset, prompt_len, d_seq, d);
    const float mean[10] = {0, 0, 2, 3, 2, 0, -2, 0, 0, 0}; // gain * d / 3 tokens
    assert_memory_equal(d, mean, sizeof d);
    h.pooling = RLHF_POOL_LAST;
    memset(d, 0, sizeof d);
    rlhf__reward_pool_bwd(&h, 3, offset, prompt_len, d_seq, d);
    const float last[10] = {0, 0, 0, 0, 6, 0, -2, 0, 0, 0};
    assert_memory_equal(d, last, sizeof d);
}

static const float weight[3] = {0.5f, -2, 1};
struct pooled {
    struct rlhf__reward_head head;
    float raw[10];
};

static double pooled(void *arg) {
    const struct pooled *p = arg;
    double sum = 0;
    float seq[3];
    rlhf__reward_pool(&p->head, 3, offset, prompt_len, p->raw, seq);
    for (int i = 0; i < 3; i++)
        sum += (double)weight[i] * (double)seq[i];
    return sum;
}

// Compares the derivative with finite differences of the pooled rewards. Pooling is linear, so they
// agree up to rounding.
static void derivative_agrees_with_differences(void **state) {
    (void)state;
    for (int32_t pooling = RLHF_POOL_MEAN; pooling <= RLHF_POOL_LAST; pooling += 2) {
        struct pooled p = {.head = {pooling, 0.75, -1}};
        float d[10] = {0};
        memcpy(p.raw, raw, sizeof p.raw);
        rlhf__reward_pool_bwd(&p.head, 3, offset, prompt_len, weight, d);
        assert_true(rlhf_test_derivative(pooled, &p, p.raw, d, 10, 0.5, NULL) < 1e-6);
    }
}

// Scores 1, 3, 5, 7: mean 4, biased sd sqrt(5).
static void fit_by_hand(void **state) {
    (void)state;
    const float scores[4] = {1, 3, 5, 7};
    struct rlhf__reward_head h = {RLHF_POOL_LAST, 9, 9};
    assert_int_equal(rlhf__reward_fit(&h, scores, 4), 1);
    close_to(h.gain, 1 / sqrt(5), 1e-15);
    close_to(h.bias, -4 / sqrt(5), 1e-15);
    assert_int_equal(h.pooling, RLHF_POOL_LAST);
    double sum = 0, square = 0;
    for (int i = 0; i < 4; i++) {
        double r = h.gain * (double)scores[i] + h.bias;
        sum += r;
        square += r * r;
    }
    close_to(sum / 4, 0, 1e-15);
    close_to(square / 4, 1, 1e-15);
}

static void fit_leaves_alone_what_has_no_spread(void **state) {
    (void)state;
    const float equal[3] = {2, 2, 2}, bad[3] = {1, NAN, 2}, nearly[2] = {1000, 1000.00006f};
    struct rlhf__reward_head h = {RLHF_POOL_MEAN, 3, 4};
    assert_int_equal(rlhf__reward_fit(&h, equal, 3), 0);
    assert_int_equal(rlhf__reward_fit(&h, bad, 3), 0);
    assert_int_equal(rlhf__reward_fit(&h, nearly, 2), 0);
    assert_int_equal(rlhf__reward_fit(&h, bad, 1), 0);
    assert_int_equal(rlhf__reward_fit(&h, NULL, 0), 0);
    close_to(h.gain, 3, 0);
    close_to(h.bias, 4, 0);
}

static void config_keeps_every_bit(void **state) {
    (void)state;
    struct rlhf__reward_head h = {RLHF_POOL_LAST, 1 / 3.0, -0.1}, back;
    json_t *config = json_object();
    int found = 9;
    assert_int_equal(rlhf__reward_head_read(config, "config.json", &back, &found, NULL), RLHF_OK);
    assert_int_equal(found, 0);
    assert_int_equal(back.pooling, RLHF_POOL_MEAN);
    close_to(back.gain, 1, 0);
    close_to(back.bias, 0, 0);
    assert_int_equal(rlhf__reward_head_write(&h, config, NULL), RLHF_OK);
    assert_int_equal(rlhf__reward_head_read(config, "config.json", &back, &found, NULL), RLHF_OK);
    assert_int_equal(found, 1);
    assert_int_equal(back.pooling, h.pooling);
    close_to(back.gain, h.gain, 0);
    close_to(back.bias, h.bias, 0);
    json_decref(config);
}

static void config_with_errors(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"{\"rlhf_reward\": 3}", "rlhf_reward must be an object"},
        {"{\"rlhf_reward\": {\"gain\": 1, \"bias\": 0}}", "pooling must be one of mean, last"},
        {"{\"rlhf_reward\": {\"pooling\": \"first\", \"gain\": 1, \"bias\": 0}}",
         "pooling must be"},
        {"{\"rlhf_reward\": {\"pooling\": \"mean\", \"gain\": 0, \"bias\": 0}}", "gain must be"},
        {"{\"rlhf_reward\": {\"pooling\": \"mean\", \"gain\": \"1\", \"bias\": 0}}",
         "gain must be"},
        {"{\"rlhf_reward\": {\"pooling\": \"mean\", \"gain\": 1}}", "bias must be a number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rlhf__error err = {0, ""};
        struct rlhf__reward_head h;
        int found;
        json_t *config = json_loads(cases[i][0], 0, NULL);
        assert_non_null(config);
        assert_int_equal(rlhf__reward_head_read(config, "some/dir/config.json", &h, &found, &err),
                         RLHF_E_INVALID);
        assert_non_null(strstr(err.text, "some/dir/config.json"));
        if (!strstr(err.text, cases[i][1])) fail_msg("%s", err.text);
        json_decref(config);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pooling_mean_and_last),
        cmocka_unit_test(derivative_of_pooling),
        cmocka_unit_test(derivative_agrees_with_differences),
        cmocka_unit_test(fit_by_hand),
        cmocka_unit_test(fit_leaves_alone_what_has_no_spread),
        cmocka_unit_test(config_keeps_every_bit),
        cmocka_unit_test(config_with_errors),
    };
    return cmocka_run_group_tests_name("reward_head", tests, NULL, NULL);
}
