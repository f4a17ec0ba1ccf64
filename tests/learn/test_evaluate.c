// test_evaluate.c: a measurement stops between rows if the user asks to stop.
#include "support/scratch.h"

#include "learn/evaluate.h"

// Not even the first row may be read, so any use of the model is an error.
static void a_stop_is_heard_before_a_row(void **state) {
    struct scratch *s = *state;
    const char *path = scratch_text(s, "rows.jsonl", "{\"text\": \"a\", \"label\": 0}\n");
    struct rlhf__dataset_opts o = {.paths = &path,
                                   .n_paths = 1,
                                   .need = RLHF__FIELD_BIT(RLHF__FIELD_TEXT),
                                   .want = RLHF__FIELD_BIT(RLHF__FIELD_TEXT) |
                                           RLHF__FIELD_BIT(RLHF__FIELD_LABEL)};
    const volatile sig_atomic_t stop = 1;
    const struct rlhf__evaluating how = {.cancelled = &stop};
    struct rlhf__model nothing = {.n_labels = 1};
    struct rlhf__error err = {0};
    struct rlhf__dataset *ds = NULL;
    struct rlhf__text_quality text;
    struct rlhf__label_quality labels;
    check_ok(rlhf__dataset_open(&o, &ds, &err), &err);
    check_error(rlhf__evaluate_text(&nothing, ds, 0, &how, &text, &err), RLHF_E_CANCELLED, &err,
                "stopped while the rows were measured");
    check_error(rlhf__evaluate_labels(&nothing, ds, 1, &how, &labels, &err), RLHF_E_CANCELLED, &err,
                "stopped while the rows were measured");
    rlhf__dataset_close(ds);
}

// Does the same for pairs, with a reward model and with a policy.
static void a_stop_is_heard_before_a_pair(void **state) {
    struct scratch *s = *state;
    const char *path = scratch_text(
        s, "pairs.jsonl", "{\"prompt\": \"It\", \"chosen\": \" was\", \"rejected\": \" is\"}\n");
    struct rlhf__preference_opts o = {.paths = &path, .n_paths = 1, .max_tokens = 64};
    const volatile sig_atomic_t stop = 1;
    const struct rlhf__evaluating how = {.cancelled = &stop};
    const struct rlhf__model nothing = {.n_labels = 1};
    const struct rlhf__reward_model rm = {0};
    struct rlhf__error err = {0};
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__preferences *set = NULL;
    struct rlhf__preference_quality q;
    check_ok(rlhf__tokenizer_open("../text/data/bpe", &tok, &err), &err);
    check_ok(rlhf__preferences_open(&o, tok, &set, &err), &err);
    check_error(rlhf__evaluate_preferences(&rm, set, &how, &q, &err), RLHF_E_CANCELLED, &err,
                "stopped while the rows were measured");
    check_error(rlhf__evaluate_policy_preferences(&nothing, NULL, set, &how, &q, &err),
                RLHF_E_CANCELLED, &err, "stopped while the rows were measured");
    rlhf__preferences_close(set);
    rlhf__tokenizer_close(tok);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_stop_is_heard_before_a_row, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(a_stop_is_heard_before_a_pair, scratch_setup,
                                        scratch_teardown)};
    return cmocka_run_group_tests_name("evaluate", tests, NULL, NULL);
}
