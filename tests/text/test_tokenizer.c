// test_tokenizer.c: a tokenizer with arbitrary bytes, special tokens, limits, very long words and
// several threads.
#include "support/scratch.h"

#include "tokenizer/tokenizer.h"

#include <pthread.h>
#include <rlhf/rng.h>

static struct rlhf__tokenizer *open_tok(const char *dir) {
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__error err = {0};
    check_ok(rlhf__tokenizer_open(dir, &tok, &err), &err);
    return tok;
}

static int setup(void **state) {
    struct rlhf__error err = {0};
    return rlhf__tokenizer_open("data/bpe", (struct rlhf__tokenizer **)state, &err);
}

static int teardown(void **state) {
    rlhf__tokenizer_close(*state);
    return 0;
}

static void encode(const struct rlhf__tokenizer *tok, const char *s, size_t n, uint32_t flags,
                   size_t max, struct rlhf__ids *ids) {
    struct rlhf__error err = {0};
    ids->n = 0;
    check_ok(rlhf__tokenizer_encode(tok, (rlhf_str){s, n}, flags, max, ids, &err), &err);
}

static void round_trip(const struct rlhf__tokenizer *tok, const char *s, size_t n) {
    struct rlhf__ids ids = {0};
    encode(tok, s, n, 0, 0, &ids);
    char *back = malloc(n + 1);
    assert_non_null(back);
    assert_int_equal(rlhf__tokenizer_decode(tok, ids.data, ids.n, 0, back, n), n);
    assert_memory_equal(back, s, n);
    free(back);
    rlhf__ids_finish(&ids);
}

static void any_bytes_come_back(void **state) {
    char s[200];
    rlhf_rng rng = {.seed = 7};
    for (int i = 0; i < 3000; i++) {
        size_t n = (size_t)rlhf_rng_below(&rng, sizeof s);
        int text = (int)rlhf_rng_below(&rng, 2); // half of the texts are mostly letters
        for (size_t k = 0; k < n; k++)
            s[k] = (char)(text && rlhf_rng_below(&rng, 8) ? 'a' + rlhf_rng_below(&rng, 26)
                                                          : rlhf_rng_below(&rng, 256));
        round_trip(*state, s, n);
    }
}

// If merging took quadratic time, or if the pattern backtracked, this would take minutes.
static void long_words(void **state) {
    size_t n = 1 << 18;
    char *s = malloc(n);
    assert_non_null(s);
    static const char *const fill[] = {"a", " ", "the", "\xC3\xA9", "\xFF", "=", "1"};
    for (size_t f = 0; f < CHECK_COUNT(fill); f++) {
        size_t len = strlen(fill[f]);
        for (size_t i = 0; i < n; i++)
            s[i] = fill[f][i % len];
        round_trip(*state, s, n);
    }
    free(s);
}

static void special_tokens_only_when_asked(void **state) {
    const struct rlhf__tokenizer *tok = *state;
    const char *text = "a<|endoftext|>b";
    struct rlhf__ids ids = {0};
    encode(tok, text, 15, 0, 0, &ids);
    for (size_t i = 0; i < ids.n; i++)
        assert_false(rlhf__tokenizer_is_special(tok, ids.data[i]));
    encode(tok, text, 15, RLHF__ENCODE_SPECIAL, 0, &ids);
    assert_int_equal(ids.n, 3);
    assert_int_equal(ids.data[1], rlhf__tokenizer_info(tok)->eos);
    char out[16];
    assert_int_equal(rlhf__tokenizer_decode(tok, ids.data, 3, 0, out, 15), 15);
    assert_memory_equal(out, text, 15);
    assert_int_equal(rlhf__tokenizer_decode(tok, ids.data, 3, RLHF__DECODE_SKIP_SPECIAL, out, 15),
                     2);
    assert_memory_equal(out, "ab", 2);
    rlhf__ids_finish(&ids);
}

static void bos_eos_and_limits(void **state) {
    const struct rlhf__tokenizer *tok = *state;
    struct rlhf__ids ids = {0};
    struct rlhf__error err = {0};
    uint32_t both = RLHF__ENCODE_BOS | RLHF__ENCODE_EOS;
    encode(tok, "the the the", 11, both, 0, &ids);
    size_t all = ids.n;
    assert_int_equal(ids.data[0], 0);
    assert_int_equal(ids.data[all - 1], 0);
    encode(tok, "the the the", 11, both, 4, &ids);
    assert_int_equal(ids.n, 4);
    assert_int_equal(ids.data[3], 0);
    encode(tok, "", 0, both, 2, &ids);
    assert_int_equal(ids.n, 2);
    check_error(rlhf__tokenizer_encode(tok, (rlhf_str){"a", 1}, both, 1, &ids, &err),
                RLHF_E_INVALID, &err, "no room");
    rlhf__ids_finish(&ids);
}

static void encode_appends(void **state) {
    struct rlhf__ids ids = {0};
    struct rlhf__error err = {0};
    encode(*state, "one", 3, 0, 0, &ids);
    size_t first = ids.n;
    int32_t id = ids.data[0];
    check_ok(rlhf__tokenizer_encode(*state, (rlhf_str){"the", 3}, 0, 1, &ids, &err), &err);
    assert_int_equal(ids.n, first + 1);
    assert_int_equal(ids.data[0], id);
    rlhf__ids_finish(&ids);
}

static void decode_ignores_foreign_ids(void **state) {
    int32_t ids[] = {-1, 1 << 30, 600, 34};
    char out[8];
    assert_int_equal(rlhf__tokenizer_decode(*state, ids, 4, 0, out, sizeof out), 1);
}

static void decode_to_valid_utf8(void **state) {
    struct rlhf__ids ids = {0};
    encode(*state, "ok \xE2\x82", 5, 0, 0, &ids);
    size_t len = 0;
    char *text = rlhf__tokenizer_text(*state, ids.data, ids.n, 0, &len);
    assert_string_equal(text, "ok \xEF\xBF\xBD");
    assert_int_equal(len, 6);
    free(text);
    rlhf__ids_finish(&ids);
}

static void wordpiece_text(void **state) {
    (void)state;
    struct rlhf__tokenizer *tok = open_tok("data/wordpiece");
    struct rlhf__ids ids = {0};
    struct rlhf__error err = {0};
    encode(tok, "The LIGHTHOUSE\xFF keeper!", 23, RLHF__ENCODE_TEMPLATE, 0, &ids);
    char *text = rlhf__tokenizer_text(tok, ids.data, ids.n, RLHF__DECODE_SKIP_SPECIAL, NULL);
    assert_string_equal(text, "the lighthouse keeper!");
    free(text);
    check_error(rlhf__tokenizer_encode(tok, (rlhf_str){"a", 1}, RLHF__ENCODE_BOS, 0, &ids, &err),
                RLHF_E_INVALID, &err, "no bos token");
    rlhf__ids_finish(&ids);
    rlhf__tokenizer_close(tok);
}

static void questions(void **state) {
    const struct rlhf__tokenizer *tok = *state;
    struct rlhf__tokenizer *same = open_tok("data/bpe"), *other = open_tok("data/wordpiece");
    struct rlhf__error err = {0};
    int32_t period = rlhf__tokenizer_find(tok, (rlhf_str){".", 1});
    char c = 0;
    assert_int_equal(rlhf__tokenizer_decode(tok, &period, 1, 0, &c, 1), 1);
    assert_int_equal(c, '.');
    assert_int_equal(rlhf__tokenizer_find(tok, (rlhf_str){"<|endoftext|>", 13}), 0);
    assert_int_equal(rlhf__tokenizer_find(tok, (rlhf_str){"no such token", 13}), -1);
    assert_true(rlhf__tokenizer_equal(tok, same));
    assert_false(rlhf__tokenizer_equal(tok, other));
    check_ok(rlhf__tokenizer_fit(same, 600, "m", &err), &err);
    check_ok(rlhf__tokenizer_fit(same, 640, "m", &err), &err);
    check_error(rlhf__tokenizer_fit(same, 599, "m", &err), RLHF_E_INVALID, &err,
                "600 tokens but the model has 599");
    check_ok(rlhf__tokenizer_fit(same, 50257, "m", &err), &err);
    rlhf__tokenizer_close(same);
    rlhf__tokenizer_close(other);
}

struct thread_job {
    const struct rlhf__tokenizer *tok;
    uint64_t hash;
};

// This runs on other threads, where asserts may not be used.
static void *thread_main(void *job_) {
    struct thread_job *job = job_;
    struct rlhf__ids ids = {0};
    struct rlhf__error err = {0};
    static const char text[] =
        "We watched it twice, caf\xC3\xA9 \xE6\x97\xA5 unbelievably zzzz 12 ";
    for (int i = 0; i < 2000; i++) {
        ids.n = 0;
        rlhf__tokenizer_encode(job->tok, (rlhf_str){text, sizeof text - 1 - (size_t)(i % 40)}, 0, 0,
                               &ids, &err);
        for (size_t k = 0; k < ids.n; k++)
            job->hash = job->hash * 31 + (uint64_t)ids.data[k];
    }
    rlhf__ids_finish(&ids);
    return NULL;
}

static void threads_agree(void **state) {
    struct thread_job job[4] = {{*state, 0}, {*state, 0}, {*state, 0}, {*state, 0}};
    pthread_t thread[4];
    for (int i = 1; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, thread_main, &job[i]), 0);
    thread_main(&job[0]);
    for (int i = 1; i < 4; i++)
        pthread_join(thread[i], NULL);
    for (int i = 1; i < 4; i++)
        assert_true(job[i].hash == job[0].hash);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_bytes_come_back),
        cmocka_unit_test(long_words),
        cmocka_unit_test(special_tokens_only_when_asked),
        cmocka_unit_test(bos_eos_and_limits),
        cmocka_unit_test(encode_appends),
        cmocka_unit_test(decode_ignores_foreign_ids),
        cmocka_unit_test(decode_to_valid_utf8),
        cmocka_unit_test(wordpiece_text),
        cmocka_unit_test(questions),
        cmocka_unit_test(threads_agree),
    };
    return cmocka_run_group_tests_name("tokenizer", tests, setup, teardown);
}
