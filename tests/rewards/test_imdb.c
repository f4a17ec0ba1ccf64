// test_imdb.c: imdb.so: finding the label by its name, the self-test, directions and outputs, and
// failures of the service.
#include "rewards/fixture.h"

#include <math.h>

static struct reward r;
static const char *const three_labels[] = {"neg", "neutral", "pos"};
static const char *const swapped_labels[] = {"POSITIVE", "NEGATIVE"};

static int fresh(void **state) {
    (void)state;
    memset(&r, 0, sizeof r);
    return 0;
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

// The fixture's logits are -m and m, so P(POSITIVE) = sigmoid(2 m).
static void probability_and_logit(void **state) {
    (void)state;
    reward_open(&r, "imdb.so", "");
    assert_string_equal(r.classifier.path, "default");
    assert_true(rlhf_test_logged(&r.host, "0 NEGATIVE, 1 POSITIVE"));
    assert_true(rlhf_test_logged(&r.host, "self-test"));
    assert_float_equal(score_text(&r, "good"), sigmoid(2), 1e-6);
    assert_float_equal(score_text(&r, "bad bad"), sigmoid(-4), 1e-6);
    assert_float_equal(score_text(&r, ""), 0.5, 1e-6);
    reward_close(&r);
    reward_open(&r, "imdb.so", "output=logit,model=some/dir");
    assert_string_equal(r.classifier.path, "some/dir");
    assert_float_equal(score_text(&r, "good good"), 4, 1e-6);
    reward_close(&r);
}

static void direction_neg(void **state) {
    (void)state;
    reward_open(&r, "imdb.so", "direction=neg");
    assert_float_equal(score_text(&r, "good"), sigmoid(-2), 1e-6);
    reward_close(&r);
    reward_open(&r, "imdb.so", "direction=neg,output=logit");
    assert_float_equal(score_text(&r, "good"), -2, 1e-6);
    reward_close(&r);
}

static void prompt_counts_unless_told_not_to(void **state) {
    (void)state;
    static struct texts t;
    texts_add(&t, "good good ", 10, "bad", 3);
    reward_open(&r, "imdb.so", "output=logit");
    assert_int_equal(texts_score(&r, &t, 0, 1), RLHF_OK);
    assert_float_equal(t.seq[0], 2, 1e-6);
    reward_close(&r);
    reward_open(&r, "imdb.so", "output=logit,text=response");
    assert_int_equal(texts_score(&r, &t, 0, 1), RLHF_OK);
    assert_float_equal(t.seq[0], -2, 1e-6);
    reward_close(&r);
}

static void unknown_label_lists_the_names(void **state) {
    (void)state;
    assert_int_equal(reward_try(&r, "imdb.so", "label=positive"), RLHF_E_INVALID);
    assert_non_null(strstr(r.host.fail_text, "\"positive\""));
    assert_non_null(strstr(r.host.fail_text, "0 NEGATIVE, 1 POSITIVE"));
    assert_non_null(strstr(r.host.fail_text, "name the positive one with label=NAME"));
    assert_int_equal(r.host.live, 0);
    assert_int_equal(r.classifier.open_count, 0);
}

// Two cases are refused: a model whose label names are swapped, and a user who named the negative
// label.
static void inverted_labels_are_refused(void **state) {
    (void)state;
    assert_int_equal(reward_try(&r, "imdb.so", "label=NEGATIVE"), RLHF_E_INVALID);
    assert_non_null(strstr(r.host.fail_text, "self-test"));
    assert_non_null(strstr(r.host.fail_text, "direction=neg"));
    assert_non_null(strstr(r.host.fail_text, "self_test=false"));
    r.classifier.labels = swapped_labels;
    assert_int_equal(reward_try(&r, "imdb.so", ""), RLHF_E_INVALID);
    assert_int_equal(r.classifier.open_count, 0);
    assert_int_equal(r.host.live, 0);
    reward_open(&r, "imdb.so", "self_test=false");
    reward_close(&r);
}

static float undecided(const void *context, rlhf_str text, int32_t label) {
    (void)context, (void)text, (void)label;
    return 1;
}

static float not_a_number(const void *context, rlhf_str text, int32_t label) {
    (void)context, (void)text, (void)label;
    return NAN;
}

static void useless_models_are_refused(void **state) {
    (void)state;
    assert_int_equal(reward_try(&r, "imdb.so", ""), RLHF_OK); // sets up the classifier
    reward_close(&r);
    r.classifier.logit = undecided;
    assert_int_equal(reward_try(&r, "imdb.so", ""), RLHF_E_INVALID);
    r.classifier.logit = not_a_number;
    assert_int_equal(reward_try(&r, "imdb.so", ""), RLHF_E_INVALID);
    r.classifier.n_labels = 0;
    assert_int_equal(reward_try(&r, "imdb.so", ""), RLHF_E_INVALID);
    assert_non_null(strstr(r.host.fail_text, "not a classifier"));
    assert_int_equal(r.host.live, 0);
}

static float three_way(const void *context, rlhf_str text, int32_t label) {
    (void)context;
    int good = 0;
    for (uint64_t i = 0; i < text.len; i++)
        good += text.ptr[i] == 'w';
    return label == 2 ? (float)good : label == 1 ? 0.5f : 0.25f;
}

static void three_labels_use_log_odds(void **state) {
    (void)state;
    rlhf_test_classifier_init(&r.classifier, three_labels, 3);
    r.classifier.logit = three_way;
    reward_open(&r, "imdb.so", "label=pos");
    double p = exp(2) / (exp(2) + exp(0.5) + exp(0.25)); // the prompt "It was " has one w
    assert_float_equal(score_text(&r, "w"), p, 1e-6);
    reward_close(&r);
    reward_open(&r, "imdb.so", "label=pos,output=logit");
    assert_float_equal(score_text(&r, "w"), log(p / (1 - p)), 1e-5);
    reward_close(&r);
}

static float one_score(const void *context, rlhf_str text, int32_t label) {
    (void)context, (void)label;
    return text.len && memchr(text.ptr, 'k', (size_t)text.len) ? 2.0f : -1.0f;
}

static void a_single_label_is_a_logistic_score(void **state) {
    (void)state;
    rlhf_test_classifier_init(&r.classifier, three_labels, 1);
    r.classifier.logit = one_score;
    reward_open(&r, "imdb.so", "label=neg,self_test=false");
    assert_float_equal(score_text(&r, "k"), sigmoid(2), 1e-6);
    reward_close(&r);
}

static void failures_of_the_service(void **state) {
    (void)state;
    reward_open(&r, "imdb.so", "");
    r.classifier.logits_status = RLHF_E_IO;
    static struct texts t;
    texts_add(&t, "a", 1, "b", 1);
    assert_int_equal(texts_score(&r, &t, 0, 1), RLHF_E_IO);
    reward_close(&r);
    assert_int_equal(reward_try(&r, "imdb.so", ""), RLHF_E_IO); // in the self-test
    assert_int_equal(r.host.live, 0);
    r.classifier.open_status = RLHF_E_INVALID;
    assert_int_equal(reward_try(&r, "imdb.so", ""), RLHF_E_INVALID);
    assert_int_equal(r.host.live, 0);
    r.host.n_services = 0;
    void *self = NULL;
    assert_int_equal(r.plugin->create(&r.host.table, r.config.bytes, &self), RLHF_E_UNSUPPORTED);
    assert_non_null(strstr(r.host.fail_text, "rlhf.classifier/1"));
    assert_int_equal(r.host.live, 0);
}

static void out_of_memory(void **state) {
    (void)state;
    for (int64_t n = 1; n <= 2; n++) {
        reward_open(&r, "imdb.so", "");
        void *self = NULL;
        rlhf_test_fail_alloc(&r.host, n, 0);
        assert_int_equal(r.plugin->create(&r.host.table, r.config.bytes, &self), RLHF_E_NOMEM);
        static struct texts t;
        if (!t.n) texts_add(&t, "a", 1, "b", 1);
        rlhf_test_fail_alloc(&r.host, 1, 0);
        assert_int_equal(texts_score(&r, &t, 0, 1), RLHF_E_NOMEM);
        assert_int_equal(texts_score(&r, &t, 0, 1), RLHF_OK);
        reward_close(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(probability_and_logit, fresh),
        cmocka_unit_test_setup(direction_neg, fresh),
        cmocka_unit_test_setup(prompt_counts_unless_told_not_to, fresh),
        cmocka_unit_test_setup(unknown_label_lists_the_names, fresh),
        cmocka_unit_test_setup(inverted_labels_are_refused, fresh),
        cmocka_unit_test_setup(useless_models_are_refused, fresh),
        cmocka_unit_test_setup(three_labels_use_log_odds, fresh),
        cmocka_unit_test_setup(a_single_label_is_a_logistic_score, fresh),
        cmocka_unit_test_setup(failures_of_the_service, fresh),
        cmocka_unit_test_setup(out_of_memory, fresh)};
    return cmocka_run_group_tests_name("rewards/imdb", tests, NULL, NULL);
}
