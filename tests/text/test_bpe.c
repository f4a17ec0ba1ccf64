// test_bpe.c: BPE of characters: characters without a token, byte fallback, parts that no merge
// joins, ignore_merges, very long texts, and more words than the cache holds. The ids are those of
// the tokenizers library.
#include "support/scratch.h"

#include "base/json.h"
#include "tokenizer/tokenizer.h"

#include <rlhf/rng.h>

#define S "\xE2\x96\x81" // U+2581
#define LLAMA2                                                                                     \
    "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":"    \
    "\"" S "\"},{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" S "\"}]}"
#define WORDS "\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"}"
#define MERGES                                                                                     \
    "\"a b\",[\"" S "\",\"ab\"],[\"" S "\",\"a\"],[\"b\",\"c\"],[\"" S "\",\"" S "\"],[\"c\","     \
    "\"a\"]"

static struct rlhf__tokenizer *open_form(struct scratch *s, const char *parts, const char *model,
                                         const char *merges) {
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__error err = {0};
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__buf_printf(&text,
                     "{%s,\"model\":{\"type\":\"BPE\",%s,\"vocab\":{\"<unk>\":0,\"<0xC3>\":1,"
                     "\"<0xA9>\":2,\"<0x41>\":3,\"" S "\":4,\"a\":5,\"b\":6,\"c\":7,\"ab\":8,"
                     "\"" S "a\":9,\"" S "ab\":10,\"bc\":11,\"b" S "\":12,\"b" S "a\":13,"
                     "\"" S S "\":14,\"ca\":15},\"merges\":[%s]}}",
                     parts, model, merges);
    scratch_bytes(s, "tokenizer.json", text.data, text.len);
    rlhf__buf_finish(&text);
    check_ok(rlhf__tokenizer_open(s->dir, &tok, &err), &err);
    return tok;
}

static void encode(const struct rlhf__tokenizer *tok, const char *s, size_t n,
                   struct rlhf__ids *ids) {
    struct rlhf__error err = {0};
    ids->n = 0;
    check_ok(rlhf__tokenizer_encode(tok, (rlhf_str){s, n}, 0, 0, ids, &err), &err);
}

static void check_ids(const struct rlhf__tokenizer *tok, const char *text, size_t n,
                      const int32_t *want) {
    struct rlhf__ids ids = {0};
    for (int again = 0; again < 2; again++) { // the second time from the cache
        encode(tok, text, strlen(text), &ids);
        if (ids.n != n) fail_msg("\"%s\": %zu ids, expected %zu", text, ids.n, n);
        assert_memory_equal(ids.data, want, n * sizeof *want);
    }
    rlhf__ids_finish(&ids);
}

#define IDS(...)                                                                                   \
    (sizeof(int32_t[]){__VA_ARGS__} / sizeof(int32_t)), (const int32_t[]) { __VA_ARGS__ }

static void what_has_no_token(void **state) {
    struct scratch *s = *state;
    struct rlhf__tokenizer *tok = open_form(
        s, LLAMA2, "\"unk_token\":\"<unk>\",\"byte_fallback\":true,\"fuse_unk\":true", MERGES);
    check_ids(tok, "ab abc ca", IDS(10, 10, 7, 4, 15));
    check_ids(tok, "xy a", IDS(4, 0, 9));
    check_ids(tok, "x\xC3\xA9y", IDS(4, 1, 2, 0));
    check_ids(tok,
              "\xC3\xA9"
              "Ax",
              IDS(4, 1, 2, 3, 0));
    check_ids(tok, "\xE4\xB8\xAD\xC3\xA9 a", IDS(4, 1, 2, 0, 9));
    check_ids(tok, "\xC3 a\xFF", IDS(4, 1, 9, 0)); // invalid: its bytes, or unknown
    rlhf__tokenizer_close(tok);
    tok = open_form(s, LLAMA2, "\"unk_token\":\"<unk>\",\"byte_fallback\":true", MERGES);
    check_ids(tok, "xx\xC3\xA9xx a", IDS(4, 0, 1, 2, 0, 0, 0, 9));
    rlhf__tokenizer_close(tok);
    tok = open_form(s, LLAMA2, "\"unk_token\":\"<unk>\",\"fuse_unk\":true", MERGES);
    check_ids(tok, "xx\xC3\xA9xx a", IDS(4, 0, 9));
    rlhf__tokenizer_close(tok);
    tok = open_form(s, LLAMA2, "\"unk_token\":null", MERGES);
    check_ids(tok, "xx\xC3\xA9xx a", IDS(4, 9));
    rlhf__tokenizer_close(tok);
}

// The log says it once, with the first text that has such a symbol.
static void said_once(void **state) {
    static const struct {
        const char *model, *text, *want;
    } cases[] = {
        {"\"unk_token\":\"<unk>\"", "a \xC3\xA9", "has no token for the character U+00E9"},
        {"\"unk_token\":\"<unk>\"", "a \xFF", "has no token for the byte 0xff"},
        {"\"unk_token\":\"<unk>\"", "ax", "what has no token becomes <unk>\n"},
        {"\"unk_token\":null", "ax", "what has no token is left out\n"},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__tokenizer *tok = open_form(*state, LLAMA2, cases[i].model, MERGES);
        struct rlhf__ids ids = {0};
        struct rlhf__log log;
        char *said = NULL;
        size_t n = 0;
        rlhf__log_init(&log);
        log.out = open_memstream(&said, &n);
        rlhf__tokenizer_set_log(tok, &log);
        encode(tok, "a b", 3, &ids);
        fflush(log.out);
        assert_int_equal(n, 0);
        for (int again = 0; again < 3; again++)
            encode(tok, cases[i].text, strlen(cases[i].text), &ids);
        fclose(log.out);
        assert_non_null(strstr(said, cases[i].want));
        assert_ptr_equal(strchr(said, '\n'), said + n - 1);
        rlhf__log_finish(&log);
        free(said);
        rlhf__ids_finish(&ids);
        rlhf__tokenizer_close(tok);
    }
}

static void parts_are_cut_where_nothing_joins(void **state) {
    struct scratch *s = *state;
    struct rlhf__tokenizer *tok = open_form(s, LLAMA2, "\"unk_token\":\"<unk>\"", MERGES);
    check_ids(tok, "a b  ab   c", IDS(9, 4, 6, 4, 10, 14, 4, 7));
    check_ids(tok, "cab ab b", IDS(4, 7, 8, 10, 4, 6));
    rlhf__tokenizer_close(tok);
    tok = open_form(s, LLAMA2, "\"unk_token\":\"<unk>\"",
                    "\"b " S "\"," MERGES ",\"b" S " a\""); // these merges join words
    check_ids(tok, "a b  ab   c", IDS(9, 4, 12, 9, 12, 14, 7));
    check_ids(tok, "cab ab b", IDS(4, 15, 13, 12, 6));
    check_ids(tok, "b a", IDS(4, 13));
    rlhf__tokenizer_close(tok);
}

static void words_that_are_tokens(void **state) {
    struct scratch *s = *state;
    struct rlhf__tokenizer *tok =
        open_form(s, WORDS, "\"unk_token\":null,\"ignore_merges\":true", "\"b c\"");
    check_ids(tok, "ab bc ca abc", IDS(8, 11, 15, 5, 11));
    rlhf__tokenizer_close(tok);
    tok = open_form(s, WORDS, "\"unk_token\":null,\"ignore_merges\":false", "\"b c\"");
    check_ids(tok, "ab bc ca", IDS(5, 6, 11, 7, 5));
    rlhf__tokenizer_close(tok);
}

// Quadratic code would take minutes here.
static void long_texts(void **state) {
    struct rlhf__tokenizer *tok = open_form(*state, LLAMA2, "\"unk_token\":\"<unk>\"", MERGES);
    struct rlhf__ids ids = {0};
    size_t n = 1 << 20, spaces = 100001;
    char *text = malloc(n);
    assert_non_null(text);
    memset(text, 'c', n);
    encode(tok, text, n, &ids);
    assert_int_equal(ids.n, n + 1);
    memset(text, ' ', spaces);
    encode(tok, text, spaces, &ids);
    assert_int_equal(ids.n, (spaces + 1) / 2);
    for (size_t i = 0; i < n; i++)
        text[i] = i % 2 ? 'a' : ' ';
    encode(tok, text, n, &ids);
    assert_int_equal(ids.n, n / 2 + 1);
    free(text);
    rlhf__ids_finish(&ids);
    rlhf__tokenizer_close(tok);
}

// The cache may replace a word by another. The new word must not get the ids of the old one.
static void more_words_than_are_remembered(void **state) {
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__error err = {0};
    struct rlhf__ids ids = {0};
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf_rng rng = {.seed = 11};
    (void)state;
    for (int i = 0; i < 60000; i++) {
        size_t n = 1 + (size_t)rlhf_rng_below(&rng, 50);
        rlhf__buf_putc(&text, ' ');
        while (n--)
            rlhf__buf_putc(&text, (char)('a' + rlhf_rng_below(&rng, 3)));
    }
    check_ok(rlhf__tokenizer_open("data/bpe", &tok, &err), &err);
    char *back = malloc(text.len);
    assert_non_null(back);
    for (int again = 0; again < 2; again++) {
        encode(tok, text.data, text.len, &ids);
        assert_int_equal(rlhf__tokenizer_decode(tok, ids.data, ids.n, 0, back, text.len), text.len);
        assert_memory_equal(back, text.data, text.len);
    }
    free(back);
    rlhf__buf_finish(&text);
    rlhf__ids_finish(&ids);
    rlhf__tokenizer_close(tok);
}

// In older files of a character tokenizer, the vocabulary also contains characters.
static void older_files(void **state) {
    struct scratch *s = *state;
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__error err = {0};
    scratch_text(s, "vocab.json", "{\"" S "\": 0, \"a\": 1, \"" S "a\": 2}");
    scratch_text(s, "merges.txt", "#version: 0.2\n" S " a\n");
    scratch_text(s, "tokenizer.json",
                 "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"" S "\":0,\"a\":1,\"" S
                 "a\":2},\"merges\":[\"" S " a\"]}}");
    check_ok(rlhf__tokenizer_open(s->dir, &tok, &err), &err);
    check_ids(tok, S "a", IDS(2));
    rlhf__tokenizer_close(tok);
    tok = NULL;
    scratch_text(s, "merges.txt", "#version: 0.2\n");
    check_error(rlhf__tokenizer_open(s->dir, &tok, &err), RLHF_E_INVALID, &err,
                "merges.txt and tokenizer.json contradict each other");
}

static void refused(void **state) {
    struct scratch *s = *state;
    static const char *const cases[][2] = {
        {"\"unk_token\":\"<none>\"", "unk_token: '<none>' is not in the vocabulary"},
        {"\"dropout\":0.5", "a BPE model with dropout is not supported; allowed: null or 0"},
        {"\"end_of_word_suffix\":\"</w>\"", "end_of_word_suffix is not supported"},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__tokenizer *tok = NULL;
        struct rlhf__error err = {0};
        struct rlhf__buf text = RLHF__BUF_INIT;
        rlhf__buf_printf(&text,
                         "{\"model\":{\"type\":\"BPE\",%s,\"vocab\":{\"a\":0},\"merges\":[]}}",
                         cases[i][0]);
        scratch_bytes(s, "tokenizer.json", text.data, text.len);
        rlhf__buf_finish(&text);
        check_error(rlhf__tokenizer_open(s->dir, &tok, &err),
                    i ? RLHF_E_UNSUPPORTED : RLHF_E_INVALID, &err, cases[i][1]);
    }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_has_no_token),     TEST(said_once),  TEST(parts_are_cut_where_nothing_joins),
        TEST(words_that_are_tokens), TEST(long_texts), TEST(more_words_than_are_remembered),
        TEST(older_files),           TEST(refused),
    };
    return cmocka_run_group_tests_name("BPE", tests, NULL, NULL);
}
