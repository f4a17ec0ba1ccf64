// test_rows_file.c: the file that keeps rows as they were sampled. Reading gives back everything
// that was written, and finds every damaged byte.
#include "base/file.h"
#include "base/hash.h"
#include "support/scratch.h"

#include "batch/rows_file.h"

#include <math.h>

enum { VOCAB = 70 };

static const struct rlhf__rows_about about = {.first = 40, .tokens = 21};

// Three rows of 5, 3 and 6 tokens. If `support` is set, each token also has a set of 70 ids.
static void fill(struct rlhf__rows *e, int support) {
    static const int32_t offset[] = {0, 5, 8, 14}, prompt_len[] = {2, 2, 4}, group[] = {0, 0, 1};
    struct rlhf__error err = {0};
    check_ok(rlhf__rows_init(e, 3, 14, &err), &err);
    memcpy(e->offset, offset, sizeof offset);
    memcpy(e->prompt_len, prompt_len, sizeof prompt_len);
    memcpy(e->group, group, sizeof group);
    e->flags = RLHF__DRAWN | RLHF__SHARE_PROMPTS;
    for (int i = 0; i < 3; i++) {
        e->source[i] = 7 - i;
        e->version[i] = 11 + i;
        e->finished[i] = i != 1;
    }
    for (int t = 0; t < 14; t++) {
        e->ids[t] = (13 * t + 5) % VOCAB;
        e->token[RLHF__LOGP_SAMPLED][t] = t == 6 ? -INFINITY : -0.1f * (float)t;
        e->token[RLHF__LOGP_OLD][t] = e->token[RLHF__LOGP_SAMPLED][t];
    }
    if (!support) return;
    check_ok(rlhf__rows_add_support(e, VOCAB, &err), &err);
    for (uint32_t k = 0; k < 6 * e->support_words; k++)
        e->support[k] = 0x9e3779b9u * (k + 1);
}

static struct rlhf__rows_fit fit_of(int support) {
    return (struct rlhf__rows_fit){
        .prompts = 8, .n_ctx = 6, .n_vocab = VOCAB, .n_vocab_support = support ? VOCAB : 0};
}

static void write_rows(const char *path, int support, struct rlhf__buf *b) {
    struct rlhf__rows e = {0};
    struct rlhf__error err = {0};
    fill(&e, support);
    check_ok(rlhf__rows_put(&e, &about, b, &err), &err);
    check_ok(rlhf__file_write(NULL, path, b->data, b->len, &err), &err);
    rlhf__rows_finish(&e);
}

static void the_file_holds_everything(void **state) {
    struct scratch *s = *state;
    const char *path = scratch_path(s, "ahead.rows");
    for (int support = 0; support < 2; support++) {
        struct rlhf__rows e = {0}, again = {0};
        struct rlhf__rows_about got = {0};
        struct rlhf__error err = {0};
        struct rlhf__buf b = RLHF__BUF_INIT;
        const struct rlhf__rows_fit fit = fit_of(support);
        fill(&e, support);
        write_rows(path, support, &b);
        check_ok(rlhf__rows_read(path, &fit, &again, &got, &err), &err);
        assert_memory_equal(&got, &about, sizeof got);
        assert_int_equal(again.n, 3);
        assert_int_equal(again.total, 14);
        assert_int_equal(again.flags, e.flags);
        assert_memory_equal(again.ids, e.ids, 14 * sizeof *e.ids);
        assert_memory_equal(again.offset, e.offset, 4 * sizeof *e.offset);
        assert_memory_equal(again.prompt_len, e.prompt_len, 3 * sizeof *e.prompt_len);
        assert_memory_equal(again.group, e.group, 3 * sizeof *e.group);
        assert_memory_equal(again.source, e.source, 3 * sizeof *e.source);
        assert_memory_equal(again.version, e.version, 3 * sizeof *e.version);
        assert_memory_equal(again.finished, e.finished, 3);
        for (int k = 0; k < RLHF__N_TOKEN_ARRAYS; k++)
            assert_memory_equal(again.token[k], e.token[k], 14 * sizeof(float));
        assert_int_equal(again.support_words, e.support_words);
        if (support) assert_memory_equal(again.support, e.support, 6 * e.support_words * 4);
        rlhf__rows_finish(&again);
        rlhf__rows_finish(&e);
        rlhf__buf_finish(&b);
    }
}

// Every damaged byte and every truncation is detected.
static void damage_is_refused(void **state) {
    struct scratch *s = *state;
    const char *path = scratch_path(s, "ahead.rows");
    struct rlhf__rows again = {0};
    struct rlhf__rows_about got;
    struct rlhf__error err = {0};
    struct rlhf__buf b = RLHF__BUF_INIT;
    const struct rlhf__rows_fit fit = fit_of(1);
    write_rows(path, 1, &b);
    for (size_t i = 0; i < b.len; i++) {
        b.data[i] ^= 0x41;
        check_ok(rlhf__file_write(NULL, path, b.data, b.len, &err), &err);
        check_error(rlhf__rows_read(path, &fit, &again, &got, &err), RLHF_E_INVALID, &err,
                    "ahead.rows is damaged");
        b.data[i] ^= 0x41;
        check_ok(rlhf__file_write(NULL, path, b.data, i, &err), &err);
        check_error(rlhf__rows_read(path, &fit, &again, &got, &err), RLHF_E_INVALID, &err,
                    "ahead.rows is damaged");
    }
    rlhf__buf_finish(&b);
}

// The checksum of the file is correct, but its numbers cannot be those of this run.
static void rows_of_another_run_are_refused(void **state) {
    struct scratch *s = *state;
    const char *path = scratch_path(s, "ahead.rows");
    enum { HEAD = 56, ROW = 32, IDS = HEAD + 3 * ROW };
    static const struct {
        size_t at;
        uint8_t value;
        const char *says;
    } cases[] = {{HEAD, 0, "a length is out of range"},
                 {HEAD, 7, "a length is out of range"},
                 {HEAD + 4, 0, "a length is out of range"},
                 {HEAD + 4, 6, "a length is out of range"},
                 {HEAD, 4, "its lengths do not add up"},
                 {HEAD + 12, 2, "a number of a row is out of range"},
                 {HEAD + 11, 128, "a number of a row is out of range"},
                 {HEAD + 16, 8, "a prompt is not one of the run's"},
                 {HEAD + 31, 128, "a number of a row is out of range"},
                 {IDS, VOCAB, "a token is not of the vocabulary"},
                 {IDS + 3, 128, "a token is not of the vocabulary"},
                 {24, 64, "its head does not fit its length"},
                 {32, 1, "the sets that tokens were sampled from are not the run's"}};
    struct rlhf__rows again = {0};
    struct rlhf__rows_about got;
    struct rlhf__error err = {0};
    const struct rlhf__rows_fit fit = fit_of(0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rlhf__buf b = RLHF__BUF_INIT;
        write_rows(path, 0, &b);
        b.data[cases[i].at] = (char)cases[i].value;
        b.len -= 4;
        rlhf__buf_u32le(&b, rlhf__crc32c(0, b.data, b.len));
        check_ok(rlhf__file_write(NULL, path, b.data, b.len, &err), &err);
        check_error(rlhf__rows_read(path, &fit, &again, &got, &err), RLHF_E_INVALID, &err,
                    cases[i].says);
        rlhf__buf_finish(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_file_holds_everything, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(damage_is_refused, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(rows_of_another_run_are_refused, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests_name("rows_file", tests, NULL, NULL);
}
