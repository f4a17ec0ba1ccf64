// test_turn_rewards.c: rewards for rows of several turns. A reward gets the whole row, or only the
// last turn as the response and everything before it as the prompt. Also tests which per-token
// rewards count.
#include "../support/scratch.h"
#include "sample/reward_view.h"

#include <string.h>

enum { ROWS = 3, EOS = 256 };

static struct rlhf__tokenizer *tok;
static struct rlhf__prompts *prompts;
static struct rlhf__response_rules *rules;
static const struct rlhf__response_config response = {.period_token = ""};

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
    fputs("\"<|endoftext|>\": 256}", f);
    assert_int_equal(fclose(f), 0);
}

static int open_all(void **state) {
    static const int32_t one[] = {'q', '?'};
    const int32_t *ids[] = {one};
    const int32_t len[] = {2};
    const struct rlhf__sampling_config sampling = {.stop = "[]"};
    struct rlhf__error err = {0};
    if (scratch_setup(state) != 0) return -1;
    struct scratch *s = *state;
    scratch_text(s, "config.json", "{\"model_type\": \"gpt2\", \"eos_token_id\": 256}");
    scratch_text(s, "merges.txt", "#version: 0.2\n");
    write_vocab(s);
    check_ok(rlhf__tokenizer_open(s->dir, &tok, &err), &err);
    check_ok(rlhf__prompts_from_ids(ids, len, 1, tok, &prompts, &err), &err);
    check_ok(rlhf__response_rules_open(&sampling, &response, tok, &rules, &err), &err);
    return 0;
}

static int close_all(void **state) {
    rlhf__response_rules_close(rules);
    rlhf__prompts_close(prompts);
    rlhf__tokenizer_close(tok);
    return scratch_teardown(state);
}

// ---- rows ----

// Letters are the policy's tokens, '$' is its end token, and all other signs are tokens of an
// environment. Row 1 has one turn. Row 2 ends with tokens of the environment.
static const char *const row[ROWS] = {"q?ab$[1]c\"$", "q?xyz$", "q?d(2)e!"};

static struct rlhf__rows make_rows(void) {
    struct rlhf__rows e = {0};
    size_t total = 0;
    for (int i = 0; i < ROWS; i++)
        total += strlen(row[i]);
    assert_int_equal(rlhf__rows_init(&e, ROWS, (uint32_t)total, NULL), RLHF_OK);
    assert_int_equal(rlhf__rows_add_turns(&e, NULL), RLHF_OK);
    for (int i = 0, t = 0; i < ROWS; i++) {
        int32_t turn = 0;
        e.prompt_len[i] = 2;
        e.group[i] = i;
        e.end[i] = (uint8_t)(i + 1);
        for (const char *c = row[i]; *c; c++, t++) {
            const int given = c < row[i] + 2 || strchr("[](!1)2", *c) != NULL;
            e.ids[t] = *c == '$' ? EOS : *c;
            if (!given) e.turn[t] = turn;
            if (given && c > row[i] + 2 && e.turn[t - 1] >= 0) turn++;
            e.token[RLHF__LOGP_SAMPLED][t] = given ? 0 : (float)-t;
        }
        e.offset[i + 1] = t;
    }
    return e;
}

struct seen {
    struct rlhf__rows e;
    struct rlhf__scored x;
    struct rlhf__reward_rows r;
    struct rlhf__reward_view v;
};

static void look(struct seen *s, uint32_t flags) {
    const struct rlhf__scored_by by = {&response, rules, prompts};
    struct rlhf__error err = {0};
    memset(s, 0, sizeof *s);
    s->e = make_rows();
    check_ok(rlhf__scored_init(&s->x, &by, &s->e, &err), &err);
    check_ok(rlhf__reward_rows_init(&s->r, &s->x, &s->e, RLHF_REWARD_LOGP_SAMPLED, &err), &err);
    check_ok(rlhf__reward_view_init(&s->v, &s->r, flags | RLHF_REWARD_LOGP_SAMPLED, 4, &err), &err);
}

static void seen_finish(struct seen *s) {
    rlhf__reward_view_finish(&s->v);
    rlhf__reward_rows_finish(&s->r);
    rlhf__scored_finish(&s->x);
    rlhf__rows_finish(&s->e);
}

static void is_text(rlhf_str got, const char *want) {
    if (got.len != strlen(want) || memcmp(got.ptr, want, (size_t)got.len) != 0)
        fail_msg("\"%.*s\" instead of \"%s\"", (int)got.len, got.ptr, want);
}

// ---- views ----

static void the_last_turn(void **state) {
    (void)state;
    static const char *const before[] = {"q?ab<|endoftext|>[1]", "q?", "q?d(2)"};
    static const char *const last[] = {"c\"", "xyz", "e"};
    static const int32_t prompt_len[] = {8, 2, 6}, len[] = {11, 6, 7};
    struct seen s;
    look(&s, RLHF_REWARD_PER_TOKEN);
    const rlhf_reward_in *in = &s.v.in;
    assert_int_equal(in->n, ROWS);
    assert_int_equal(in->phase, 4);
    assert_true(!in->turn && !in->messages && !in->end);
    for (uint32_t i = 0; i < ROWS; i++) {
        is_text(in->prompt[i], before[i]);
        is_text(in->response[i], last[i]);
        assert_int_equal(in->prompt_len[i], prompt_len[i]);
        assert_int_equal(in->offset[i + 1] - in->offset[i], len[i]);
        // The texts are the texts of the tokens.
        assert_memory_equal(in->ids + in->offset[i], s.e.ids + s.e.offset[i],
                            (size_t)len[i] * sizeof(int32_t));
        for (int32_t k = 0; k < len[i]; k++) {
            const float want = k < prompt_len[i] ? 0 : (float)-(s.e.offset[i] + k);
            assert_true(in->logp_sampled[in->offset[i] + k] <= want &&
                        in->logp_sampled[in->offset[i] + k] >= want);
        }
    }
    assert_null(in->logp_ref);
    seen_finish(&s);
}

static void the_whole_row(void **state) {
    (void)state;
    static const char *const behind[] = {"ab[1]c\"", "xyz", "d(2)e"};
    static const char *const messages[] = {"[{\"role\": \"user\", \"content\": \"q?\"}, {\"role\": "
                                           "\"assistant\", \"content\": \"ab\"}, "
                                           "{\"role\": \"user\", \"content\": \"[1]\"}, "
                                           "{\"role\": \"assistant\", \"content\": \"c\\\"\"}]",
                                           "[{\"role\": \"user\", \"content\": \"q?\"}, {\"role\": "
                                           "\"assistant\", \"content\": \"xyz\"}]",
                                           "[{\"role\": \"user\", \"content\": \"q?\"}, {\"role\": "
                                           "\"assistant\", \"content\": \"d\"}, "
                                           "{\"role\": \"user\", \"content\": \"(2)\"}, "
                                           "{\"role\": \"assistant\", \"content\": \"e\"}]"};
    struct seen s;
    look(&s, RLHF_REWARD_TURNS);
    const rlhf_reward_in *in = &s.v.in;
    for (uint32_t i = 0; i < ROWS; i++) {
        is_text(in->prompt[i], "q?");
        is_text(in->response[i], behind[i]);
        is_text(in->messages[i], messages[i]);
        assert_int_equal(in->prompt_len[i], 2);
        assert_int_equal(in->end[i], i + 1);
        assert_memory_equal(in->turn + in->offset[i], s.e.turn + s.e.offset[i],
                            (size_t)(in->offset[i + 1] - in->offset[i]) * sizeof(int32_t));
    }
    assert_ptr_equal(in->logp_sampled, s.r.logp_sampled);
    seen_finish(&s);
}

// Two kinds of values do not count: a value for a token that the policy did not sample, and a value
// for a turn outside the response that the reward got.
static void token_rewards(void **state) {
    (void)state;
    static const char *const kept[2] = {"........111", "..111...111"}; // values of row 0
    for (int k = 0; k < 2; k++) {
        struct seen s;
        look(&s, k ? RLHF_REWARD_TURNS : 0);
        float *token = calloc(s.e.total, sizeof *token);
        assert_non_null(token);
        for (uint32_t t = 0; t < s.e.total; t++)
            token[t] = 1;
        rlhf__reward_view_keep(&s.v, &s.r, token);
        for (int32_t t = 0; t < 11; t++)
            assert_int_equal((int)token[t], kept[k][t] == '1');
        free(token);
        seen_finish(&s);
    }
}

// Rows that are picked and joined keep their texts.
static void rows_that_move(void **state) {
    (void)state;
    const uint32_t pick[] = {0, 2};
    struct rlhf__reward_rows some = {0};
    struct rlhf__error err = {0};
    struct seen a, b;
    look(&a, 0);
    look(&b, 0);
    check_ok(rlhf__reward_rows_pick(&some, &a.r, pick, 2, &err), &err);
    assert_ptr_equal(some.texts[1], a.r.texts[2]);
    assert_int_equal(some.end[1], 3);
    assert_int_equal(some.turn[some.offset[1] + 2], 0);
    rlhf__reward_rows_finish(&some);
    rlhf__scored_pick(&a.x, pick, 2);
    check_ok(rlhf__scored_join(&a.x, &b.x, &err), &err);
    assert_int_equal(a.x.n, 5);
    assert_string_equal(a.x.turns[1].before, "q?d(2)");
    assert_string_equal(a.x.turns[2].before, "q?ab<|endoftext|>[1]");
    assert_string_equal(a.x.turns[4].after, "d(2)e");
    seen_finish(&a);
    seen_finish(&b);
}

// Rows of one turn reach the reward unchanged.
static void rows_of_one_turn(void **state) {
    (void)state;
    const struct rlhf__scored_by by = {&response, rules, prompts};
    struct rlhf__error err = {0};
    struct seen s = {.e = make_rows()};
    free(s.e.turn);
    s.e.turn = NULL;
    check_ok(rlhf__scored_init(&s.x, &by, &s.e, &err), &err);
    check_ok(rlhf__reward_rows_init(&s.r, &s.x, &s.e, 0, &err), &err);
    check_ok(rlhf__reward_view_init(&s.v, &s.r, RLHF_REWARD_TURNS, 0, &err), &err);
    assert_true(!s.x.turns && !s.v.in.turn && !s.v.in.messages && !s.v.in.end);
    assert_ptr_equal(s.v.in.prompt, s.r.prompt);
    is_text(s.v.in.response[0], "ab[1]c\"");
    seen_finish(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_turn), cmocka_unit_test(the_whole_row),
        cmocka_unit_test(token_rewards), cmocka_unit_test(rows_that_move),
        cmocka_unit_test(rows_of_one_turn)};
    return cmocka_run_group_tests_name("turn_rewards", tests, open_all, close_all);
}
