// test_response_rules.c: the end of responses, and the end of their scored text.
#include "support/check.h"

#include "../support/scratch.h"
#include "sample/response_rules.h"

#include <string.h>

// The bytes, and three merges.
enum { A = 'a', B = 'b', DOT = '.', DOTS = 256, B_DOT, AB, EOS, E_1 = 0xc3, E_2 = 0xa9 };

static struct rlhf__tokenizer *tok;

// vocab.json: GPT-2 spells invisible bytes as the characters from U+0100 on.
static void write_vocab(struct scratch *s) {
    FILE *f = fopen(scratch_path(s, "vocab.json"), "wb");
    assert_non_null(f);
    unsigned next = 256;
    fputc('{', f);
    for (unsigned b = 0; b < 256; b++) {
        int plain = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        fprintf(f, "\"\\u%04x\": %u, ", plain ? b : next++, b);
    }
    fputs("\"..\": 256, \"b.\": 257, \"ab\": 258, \"<|endoftext|>\": 259}", f);
    assert_int_equal(fclose(f), 0);
}

static int open_tokenizer(void **state) {
    if (scratch_setup(state) != 0) return -1;
    struct scratch *s = *state;
    scratch_text(s, "config.json", "{\"model_type\": \"gpt2\", \"eos_token_id\": 259}");
    scratch_text(s, "merges.txt", "#version: 0.2\n. .\nb .\na b\n");
    write_vocab(s);
    struct rlhf__error err = {0};
    if (rlhf__tokenizer_open(s->dir, &tok, &err) == RLHF_OK) return 0;
    print_error("%s\n", err.text);
    return -1;
}

static int close_tokenizer(void **state) {
    rlhf__tokenizer_close(tok);
    return scratch_teardown(state);
}

static struct rlhf__response_rules *rules(const char *stop,
                                          const struct rlhf__response_config *response) {
    struct rlhf__sampling_config sampling = {.stop = stop};
    struct rlhf__response_rules *r = NULL;
    struct rlhf__error err = {0};
    if (rlhf__response_rules_open(&sampling, response, tok, &r, &err) != RLHF_OK)
        fail_msg("%s", err.text);
    return r;
}

static const struct rlhf__response_config plain = {.period_token = ""};

// Returns how many tokens of ids[0..n) are needed until the rules stop the response, or 0 if they
// never do.
static int32_t stops_after(struct rlhf__response_rules *r, const int32_t *ids, int32_t n) {
    for (int32_t k = 1; k <= n; k++) {
        struct rlhf__error err = {0};
        int stops = 0;
        assert_int_equal(rlhf__response_stops(r, ids, k, &stops, &err), RLHF_OK);
        if (stops) return k;
    }
    return 0;
}

static void texts_may_span_tokens(void **state) {
    (void)state;
    struct rlhf__response_rules *r = rules("[\"a..b\", \"\xc3\xa9\"]", &plain);
    const int32_t inside[] = {B, AB, A, DOTS, B_DOT, A}; // b ab a .. b. a
    assert_int_equal(stops_after(r, inside, 6), 5);
    const int32_t near[] = {A, DOTS, A, DOTS, DOT, B, AB};
    assert_int_equal(stops_after(r, near, 7), 0);
    const int32_t utf8[] = {E_2, E_1, A, E_1, E_2};
    assert_int_equal(stops_after(r, utf8, 5), 5);
    // A special token does not have bytes. So its two neighbors are adjacent in the text.
    const int32_t around[] = {A, DOT, EOS, DOT, B};
    assert_int_equal(stops_after(r, around, 5), 5);
    rlhf__response_rules_close(r);
}

static void ids_stop_where_they_are_drawn(void **state) {
    (void)state;
    struct rlhf__response_rules *r = rules("[7, \"bb\", 256]", &plain);
    const int32_t ids[] = {A, B, DOT, DOT, AB, DOTS, B};
    assert_int_equal(stops_after(r, ids, 7), 6);
    const int32_t text[] = {AB, B, DOTS};
    assert_int_equal(stops_after(r, text, 3), 2);
    rlhf__response_rules_close(r);
    r = rules("[]", &plain);
    assert_int_equal(stops_after(r, ids, 7), 0);
    assert_int_equal(rlhf__response_text_end(r, "ab", 2), 2);
    rlhf__response_rules_close(r);
}

static void a_special_token_stops_by_its_text(void **state) {
    (void)state;
    struct rlhf__response_rules *r = rules("[\"<|endoftext|>\"]", &plain);
    const int32_t ids[] = {A, B, EOS, A};
    assert_int_equal(stops_after(r, ids, 4), 3);
    rlhf__response_rules_close(r);
}

static void the_text_ends_before_the_first(void **state) {
    (void)state;
    struct rlhf__response_rules *r = rules("[\"END\", \"\\n\", 4]", &plain);
    assert_int_equal(rlhf__response_text_end(r, "one END two\n", 12), 4);
    assert_int_equal(rlhf__response_text_end(r, "one\nEND", 7), 3);
    assert_int_equal(rlhf__response_text_end(r, "EN", 2), 2);
    assert_int_equal(rlhf__response_text_end(r, "", 0), 0);
    rlhf__response_rules_close(r);
}

// The rule of the 2019 code: truncate_after 16 counts tokens from 0, so the 17th token is the first
// token that may end the text. Only the single token "." ends the text.
static void a_period_is_a_token_or_any_with_one(void **state) {
    (void)state;
    int32_t ids[24];
    for (int k = 0; k < 24; k++)
        ids[k] = A;
    ids[15] = DOT;
    ids[17] = B_DOT;
    ids[19] = DOT;
    struct rlhf__response_config any = {.period_token = "", .period_min = 16, .period_max = 24};
    struct rlhf__response_rules *r = rules("[]", &any);
    assert_int_equal(rlhf__response_period(r, ids, 24), 16);
    any.period_min = 17;
    assert_int_equal(rlhf__response_period(r, ids, 24), 18);
    rlhf__response_rules_close(r);
    struct rlhf__response_config one = {.period_token = ".", .period_min = 17, .period_max = 24};
    r = rules("[]", &one);
    assert_int_equal(rlhf__response_period(r, ids, 24), 20);
    assert_int_equal(rlhf__response_period(r, ids, 19), -1);
    rlhf__response_rules_close(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_may_span_tokens),
        cmocka_unit_test(ids_stop_where_they_are_drawn),
        cmocka_unit_test(a_special_token_stops_by_its_text),
        cmocka_unit_test(the_text_ends_before_the_first),
        cmocka_unit_test(a_period_is_a_token_or_any_with_one),
    };
    return cmocka_run_group_tests_name("response_rules", tests, open_tokenizer, close_tokenizer);
}
