// test_format.c: format.so: think tags and patterns. Patterns must not make a run hang.
#include "rewards/fixture.h"

static struct reward r;

static void expect(const char *options, const char *response, double want) {
    reward_open(&r, "format.so", options);
    const double score = score_text(&r, response);
    if (score != want) fail_msg("[%s] \"%s\" pays %g, %g is right", options, response, score, want);
    reward_close(&r);
}

static void think(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int think, once, opened, opened_once;
    } all[] = {{"<think>a</think>b", 1, 1, 0, 0},
               {"<think>\na\n</think>\nb\n", 1, 1, 0, 0},
               {"<think></think>b", 1, 1, 0, 0},
               {"<think>a</think>", 1, 0, 0, 0},
               {"<think>a</think> \n\t", 1, 0, 0, 0},
               {"<think>a</think>b</think>", 1, 0, 0, 0},
               {" <think>a</think>b", 0, 0, 0, 0},
               {"x<think>a</think>b", 0, 0, 0, 0},
               {"<think>a", 0, 0, 0, 0},
               {"<think>", 0, 0, 0, 0},
               {"</think><think>", 0, 0, 0, 0},
               {"<think>a<think>b</think>c", 0, 0, 0, 0},
               {"<think>a</think><think>b", 0, 0, 0, 0},
               {"<Think>a</Think>b", 0, 0, 0, 0},
               {"<think>a</think", 0, 0, 0, 0},
               {"a</think>b", 0, 0, 1, 1},
               {"</think>b", 0, 0, 1, 1},
               {"a</think>", 0, 0, 1, 0},
               {"a</think>b</think>c", 0, 0, 1, 0},
               {"a", 0, 0, 0, 0},
               {"", 0, 0, 0, 0}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        expect("", all[i].text, all[i].think);
        expect("tags=think_once", all[i].text, all[i].once);
        expect("opened=true", all[i].text, all[i].opened);
        expect("opened=true,tags=think_once", all[i].text, all[i].opened_once);
    }
    expect("right=0.25,wrong=-1", "<think>a</think>b", 0.25);
    expect("right=0.25,wrong=-1", "", -1);
}

static void patterns(void **state) {
    (void)state;
    expect("pattern=b+", "abbc", 1);
    expect("pattern=^b+", "abbc", 0);
    expect("pattern=b+,match=begin", "abbc", 0);
    expect("pattern=a.*c,match=begin", "abbcd", 1);
    expect("pattern=a.*c,match=whole", "abbcd", 0);
    expect("pattern=a.*c,match=whole", "abbc", 1);
    expect("pattern=a.c", "a\nc", 0);
    expect("pattern=(?s)a.c", "a\nc", 1);
    expect("pattern=^c$", "a\nc\n", 0);
    expect("pattern=(?m)^c$", "a\nc\n", 1);
    expect("pattern=(?i)STEP \\d", "step 2", 1);
    expect("pattern=^.$", "\xc3\xa9", 1); // one character, not two bytes
    expect("pattern=\\w", "\xc3\xa9", 1);
    expect("pattern=b",
           "\xff"
           "b\xc3",
           1); // invalid UTF-8 matches nothing; the rest matches
    expect("pattern=^.*$,match=whole", "a\xff", 0);
    expect("pattern=^$", "", 1);
    expect("pattern=(?=.*x)(?=.*y)", "yx", 1);
}

static void a_pattern_that_does_not_compile(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"pattern=(ab",
         "the pattern does not compile: missing closing parenthesis, at byte 3 of (ab"},
        {"pattern=a[z-b]c", "the pattern does not compile: range out of order in character class, "
                            "at byte 4 of a[z-b]c"},
        {"pattern=*a",
         "the pattern does not compile: quantifier does not follow a repeatable item, "
         "at byte 0 of *a"},
        {"pattern=", "the pattern is empty: it would match every response"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(reward_try(&r, "format.so", bad[i][0]), RLHF_E_INVALID);
        assert_string_equal(r.host.fail_text, bad[i][1]);
        assert_int_equal(r.host.live, 0);
    }
}

// (a+)+$ can match n letters followed by another character in 2^n ways, and the matcher tries them
// all.
static void limits(void **state) {
    (void)state;
    double gave_up;
    reward_open(&r, "format.so", "pattern=(a+)+$,limit=10000");
    for (int i = 0; i < 2; i++) {
        assert_true(score_text(&r, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab") ==
                    0);
        assert_true(rlhf_test_metric(&r.host, "gave_up", &gave_up) && gave_up == i + 1);
    }
    assert_int_equal(r.host.n_logs, 1); // reported once
    rlhf_test_phase(&r.host);
    assert_true(score_text(&r, "aaaa") == 1);
    assert_true(rlhf_test_metric(&r.host, "gave_up", &gave_up) && gave_up == 0);
    reward_close(&r);
}

// 2^16 ways are within the default limit, but not within a limit of 1000.
static void the_limit_is_the_option(void **state) {
    (void)state;
    double gave_up;
    for (int i = 0; i < 2; i++) {
        reward_open(&r, "format.so", i ? "pattern=(a+)+$,limit=1000" : "pattern=(a+)+$");
        assert_true(score_text(&r, "aaaaaaaaaaaaaaaab") == 0);
        assert_true(rlhf_test_metric(&r.host, "gave_up", &gave_up) && gave_up == i);
        reward_close(&r);
    }
}

static void metrics(void **state) {
    (void)state;
    static struct texts t;
    double value;
    memset(&t, 0, sizeof t);
    texts_add(&t, "x", 1, "<think>a</think>b", 17);
    texts_add(&t, "x", 1, "b", 1);
    reward_open(&r, "format.so", "");
    assert_int_equal(texts_score(&r, &t, 0, 2), RLHF_OK);
    assert_true(rlhf_test_metric(&r.host, "matched", &value) && value == 0.5);
    assert_int_equal(texts_score(&r, &t, 1, 2), RLHF_OK); // one more row of the phase
    assert_true(rlhf_test_metric(&r.host, "matched", &value) && value == 1.0 / 3);
    assert_false(rlhf_test_metric(&r.host, "gave_up", &value));
    assert_int_equal(t.verdict[0], RLHF_VERDICT_NONE);
    reward_close(&r);
}

static void what_acts(void **state) {
    (void)state;
    reward_open(&r, "format.so", "");
    assert_string_equal(reward_why_unused(&r, "match"), "no pattern is given");
    assert_string_equal(reward_why_unused(&r, "limit"), "no pattern is given");
    assert_null(reward_why_unused(&r, "tags"));
    reward_close(&r);
    reward_open(&r, "format.so", "pattern=a");
    assert_string_equal(reward_why_unused(&r, "tags"), "a pattern is given");
    assert_string_equal(reward_why_unused(&r, "opened"), "a pattern is given");
    assert_null(reward_why_unused(&r, "match"));
    reward_close(&r);
}

// Each allocation of create() and of score() fails in turn.
static void out_of_memory(void **state) {
    (void)state;
    static const rlhf_str text = {"abababababac", 12};
    static const int32_t offset[2] = {0, 1}, none[1] = {0};
    float seq = 0;
    uint8_t verdict = 0;
    const rlhf_reward_in in = {.size = sizeof in,
                               .n = 1,
                               .prompt = &text,
                               .response = &text,
                               .meta = &text,
                               .ids = offset,
                               .offset = offset,
                               .prompt_len = none};
    const rlhf_reward_out out = {.size = sizeof out, .seq = &seq, .verdict = &verdict};
    reward_open(&r, "format.so", "pattern=(?:a|b)+c");
    for (int64_t n = 1, ok = 0; !ok; n++) {
        void *self = NULL;
        rlhf_test_fail_alloc(&r.host, n, 0);
        rlhf_status st = r.plugin->create(&r.host.table, r.config.bytes, &self);
        if (st == RLHF_OK) st = r.ops->score(self, &in, &out);
        ok = st == RLHF_OK && r.host.allocs < n;
        assert_int_equal(st, ok ? RLHF_OK : RLHF_E_NOMEM);
        if (self) r.plugin->destroy(self);
        assert_true(n < 64);
    }
    assert_float_equal(seq, 1, 0);
    rlhf_test_fail_alloc(&r.host, 0, 0);
    reward_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(think),
                                       cmocka_unit_test(patterns),
                                       cmocka_unit_test(a_pattern_that_does_not_compile),
                                       cmocka_unit_test(limits),
                                       cmocka_unit_test(the_limit_is_the_option),
                                       cmocka_unit_test(metrics),
                                       cmocka_unit_test(what_acts),
                                       cmocka_unit_test(out_of_memory)};
    return cmocka_run_group_tests_name("rewards/format", tests, NULL, NULL);
}
