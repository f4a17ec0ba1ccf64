// test_pieces.c: the texts of single tokens. If several tokens form one character, the last of them
// has this character as its text.
#include "support/scratch.h"

#include "tokenizer/pieces.h"

#include <rlhf/rng.h>

static int setup(void **state) {
    struct rlhf__error err = {0};
    return rlhf__tokenizer_open("data/bpe", (struct rlhf__tokenizer **)state, &err);
}

static int teardown(void **state) {
    rlhf__tokenizer_close(*state);
    return 0;
}

// Writes the ids of single bytes to `ids`. Returns their number.
static size_t byte_ids(const struct rlhf__tokenizer *tok, const char *bytes, int32_t *ids) {
    const size_t n = strlen(bytes);
    for (size_t i = 0; i < n; i++)
        ids[i] = rlhf__tokenizer_find(tok, (rlhf_str){bytes + i, 1});
    return n;
}

// Decodes the bytes one by one, and compares the pieces with `want`, which has | after each piece.
static void split(const struct rlhf__tokenizer *tok, const char *bytes, const char *want) {
    struct rlhf__buf text = RLHF__BUF_INIT, got = RLHF__BUF_INIT;
    struct rlhf__error err = {0};
    int32_t ids[64] = {0};
    size_t end[64], at = 0;
    const size_t n = byte_ids(tok, bytes, ids);
    check_ok(rlhf__pieces(tok, ids, n, &text, end, &err), &err);
    for (size_t i = 0; i < n; at = end[i++]) {
        rlhf__buf_put(&got, text.data + at, end[i] - at);
        rlhf__buf_putc(&got, '|');
    }
    assert_string_equal(rlhf__buf_text(&got), want);
    rlhf__buf_finish(&text);
    rlhf__buf_finish(&got);
}

static void a_character_belongs_to_its_last_token(void **state) {
    split(*state, "ab", "a|b|");
    split(*state, "\xc3\xa9!", "|\xc3\xa9|!|");
    split(*state, "\xe2\x82\xac", "||\xe2\x82\xac|");
    split(*state, "x\xf0\x9f\x98\x80y", "x||||\xf0\x9f\x98\x80|y|");
}

// Invalid bytes become U+FFFD once no later token can complete the character.
static void invalid_bytes_are_replaced(void **state) {
    split(*state,
          "\xff"
          "a",
          "\xef\xbf\xbd|a|");
    split(*state,
          "\xe2\x82"
          "a",
          "||\xef\xbf\xbd"
          "a|");
    split(*state, "a\xe2\x82", "a||\xef\xbf\xbd|"); // the end
    split(*state, "\x80\x80\x80\x80", "\xef\xbf\xbd|\xef\xbf\xbd|\xef\xbf\xbd|\xef\xbf\xbd|");
}

// All pieces together are the text of all tokens, including special ones.
static void the_pieces_are_the_text(void **state) {
    const struct rlhf__tokenizer *tok = *state;
    const int32_t vocab = rlhf__tokenizer_info(tok)->n_vocab;
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__error err = {0};
    rlhf_rng rng = {.seed = 11};
    int32_t ids[40];
    size_t end[40], len;
    for (int round = 0; round < 2000; round++) {
        const size_t n = (size_t)rlhf_rng_below(&rng, 40);
        for (size_t i = 0; i < n; i++)
            ids[i] = (int32_t)rlhf_rng_below(&rng, (uint64_t)vocab);
        rlhf__buf_clear(&text);
        check_ok(rlhf__pieces(tok, ids, n, &text, end, &err), &err);
        char *want = rlhf__tokenizer_text(tok, ids, n, 0, &len);
        assert_non_null(want);
        assert_int_equal(text.len, len);
        assert_string_equal(rlhf__buf_text(&text), want);
        if (n) assert_int_equal(end[n - 1], len);
        free(want);
    }
    rlhf__buf_finish(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_character_belongs_to_its_last_token),
        cmocka_unit_test(invalid_bytes_are_replaced),
        cmocka_unit_test(the_pieces_are_the_text),
    };
    return cmocka_run_group_tests_name("text_pieces", tests, setup, teardown);
}
