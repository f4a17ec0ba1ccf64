// test_real_vocab.c: the vocabularies of GPT-2 and BERT. If ../shared/data next to the repository
// lacks them, the test is skipped with a message.
#include "support/scratch.h"

#include "tokenizer/tokenizer.h"

static struct rlhf__tokenizer *open_shared(const char *name) {
    const char *source = getenv("RLHF_SOURCE_DIR");
    char dir[1024];
    snprintf(dir, sizeof dir, "%s/../shared/data/%s", source ? source : ".", name);
    if (!rlhf__is_dir(dir)) {
        print_message("%s is not there: skipped\n", dir);
        return NULL;
    }
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__error err = {0};
    check_ok(rlhf__tokenizer_open(dir, &tok, &err), &err);
    return tok;
}

static void check_ids(const struct rlhf__tokenizer *tok, const char *text, uint32_t flags,
                      const int32_t *want, size_t n) {
    struct rlhf__ids ids = {0};
    struct rlhf__error err = {0};
    check_ok(rlhf__tokenizer_encode(tok, (rlhf_str){text, strlen(text)}, flags, 0, &ids, &err),
             &err);
    assert_int_equal(ids.n, n);
    assert_memory_equal(ids.data, want, n * sizeof *want);
    rlhf__ids_finish(&ids);
}

static void gpt2(void **state) {
    (void)state;
    struct rlhf__tokenizer *tok = open_shared("gpt2");
    if (!tok) skip();
    static const int32_t movie[] = {1212, 3807, 373, 1107};
    static const int32_t other[] = {3118, 291, 1098, 40304, 836, 470, 220, 628, 220, 2124};
    const struct rlhf__tokenizer_info *info = rlhf__tokenizer_info(tok);
    assert_int_equal(info->n_vocab, 50257);
    assert_int_equal(info->eos, 50256);
    assert_int_equal(info->bos, 50256);
    check_ids(tok, "This movie was really", 0, movie, 4);
    check_ids(tok, "Unicode caf\xC3\xA9 don't \n\n  x", 0, other, CHECK_COUNT(other));
    rlhf__tokenizer_close(tok);
}

static void bert(void **state) {
    (void)state;
    struct rlhf__tokenizer *tok = open_shared("bert-base-uncased");
    if (!tok) skip();
    static const int32_t want[] = {101, 2023, 3185, 2001, 2428, 4895, 2483, 2135, 999, 102};
    const struct rlhf__tokenizer_info *info = rlhf__tokenizer_info(tok);
    assert_int_equal(info->n_vocab, 30522);
    assert_int_equal(info->cls, 101);
    assert_int_equal(info->sep, 102);
    assert_int_equal(info->pad, 0);
    assert_int_equal(info->unk, 100);
    check_ids(tok,
              "This MOVIE was r\xC3\xA9"
              "ally unISly!",
              RLHF__ENCODE_TEMPLATE, want, CHECK_COUNT(want));
    rlhf__tokenizer_close(tok);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(gpt2), cmocka_unit_test(bert)};
    return cmocka_run_group_tests_name("real vocabularies", tests, NULL, NULL);
}
