// test_frame.c: a training stage may put bos before texts. It writes this setting to the
// tokenizer's files, so a copy of the model reads texts in the same way.
#include "support/scratch.h"

#include "base/json.h"
#include "tokenizer/tokenizer.h"

static struct rlhf__tokenizer *open_dir(const char *dir) {
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__error err = {0};
    check_ok(rlhf__tokenizer_open(dir, &tok, &err), &err);
    return tok;
}

static void copy(struct scratch *s, const char *from, const char *name) {
    struct rlhf__buf bytes = RLHF__BUF_INIT;
    struct rlhf__error err = {0};
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", from, name);
    check_ok(rlhf__file_read(path, 1 << 20, &bytes, &err), &err);
    scratch_bytes(s, name, bytes.data, bytes.len);
    rlhf__buf_finish(&bytes);
}

// A file of tests/hf's GPT-2.
static void copy_gpt2(struct scratch *s, const char *name) {
    const char *build = getenv("RLHF_BUILD_DIR");
    char from[2048];
    assert_non_null(build);
    snprintf(from, sizeof from, "%s/tests/hf/dirs/gpt2", build);
    copy(s, from, name);
}

static void check_ids(const struct rlhf__tokenizer *tok, int bos) {
    struct rlhf__ids ids = {0};
    struct rlhf__error err = {0};
    check_ok(rlhf__tokenizer_encode(tok, (rlhf_str){"a", 1}, RLHF__ENCODE_TEMPLATE, 0, &ids, &err),
             &err);
    assert_int_equal(ids.n, 1 + bos);
    if (bos) assert_int_equal(ids.data[0], rlhf__tokenizer_info(tok)->bos);
    assert_int_equal(rlhf__tokenizer_has_bos(tok), bos);
    assert_true(rlhf__tokenizer_only_bos(tok));
    rlhf__ids_finish(&ids);
}

static void write_frame(const struct rlhf__tokenizer *tok, const char *path) {
    struct rlhf__error err = {0};
    struct rlhf__folder *dir = scratch_folder(path);
    check_ok(rlhf__tokenizer_write_frame(tok, dir, &err), &err);
    rlhf__folder_close(dir);
}

// Turns the setting on, then off. Each time, writes it, reads it back and checks the ids. `name` is
// the file that stores the setting.
static void there_and_back(struct scratch *s, const char *name) {
    for (int on = 1; on >= 0; on--) {
        struct rlhf__tokenizer *tok = open_dir(s->dir);
        check_ids(tok, !on);
        rlhf__tokenizer_set_bos(tok, on);
        check_ids(tok, on);
        write_frame(tok, s->dir);
        rlhf__tokenizer_close(tok);
        assert_true(rlhf__is_file(scratch_path(s, name)));
        tok = open_dir(s->dir);
        check_ids(tok, on);
        rlhf__tokenizer_close(tok);
    }
}

static void classic_files(void **state) {
    struct scratch *s = *state;
    copy(s, "data/bpe", "vocab.json");
    copy(s, "data/bpe", "merges.txt");
    there_and_back(s, "tokenizer_config.json");
    assert_false(rlhf__is_file(scratch_path(s, "tokenizer.json")));
    copy(s, "data/bpe", "tokenizer_config.json"); // its other contents stay
    there_and_back(s, "tokenizer_config.json");
    json_t *v = NULL;
    struct rlhf__error err = {0};
    check_ok(rlhf__json_load(scratch_path(s, "tokenizer_config.json"), &v, &err), &err);
    assert_string_equal(json_string_value(json_object_get(v, "tokenizer_class")), "GPT2Tokenizer");
    json_decref(v);
}

static void tokenizer_json(void **state) {
    struct scratch *s = *state;
    copy_gpt2(s, "tokenizer.json");
    copy_gpt2(s, "tokenizer_config.json");
    there_and_back(s, "tokenizer.json");
}

// If tokenizer.json changes, add_bos_token changes with it. For a LlamaTokenizer, the two must not
// contradict each other.
static void add_bos_token_beside_tokenizer_json(void **state) {
    struct scratch *s = *state;
    copy_gpt2(s, "tokenizer.json");
    scratch_text(s, "tokenizer_config.json",
                 "{\"tokenizer_class\": \"LlamaTokenizer\", \"bos_token\": \"<|endoftext|>\","
                 " \"add_bos_token\": false, \"model_max_length\": 7}");
    there_and_back(s, "tokenizer.json");
    json_t *v = NULL;
    struct rlhf__error err = {0};
    check_ok(rlhf__json_load(scratch_path(s, "tokenizer_config.json"), &v, &err), &err);
    assert_true(json_is_false(json_object_get(v, "add_bos_token")));
    assert_int_equal(json_integer_value(json_object_get(v, "model_max_length")), 7);
    json_decref(v);
}

static void nothing_changed_nothing_written(void **state) {
    struct scratch *s = *state;
    copy(s, "data/bpe", "vocab.json");
    copy(s, "data/bpe", "merges.txt");
    struct rlhf__tokenizer *tok = open_dir(s->dir);
    rlhf__tokenizer_set_bos(tok, 0);
    write_frame(tok, s->dir);
    assert_false(rlhf__is_file(scratch_path(s, "tokenizer_config.json")));
    rlhf__tokenizer_close(tok);
    tok = open_dir("data/wordpiece"); // this tokenizer has its own setting
    rlhf__tokenizer_set_bos(tok, 1);
    assert_false(rlhf__tokenizer_has_bos(tok));
    assert_false(rlhf__tokenizer_only_bos(tok));
    write_frame(tok, s->dir);
    assert_false(rlhf__is_file(scratch_path(s, "tokenizer_config.json")));
    rlhf__tokenizer_close(tok);
}

// When a run writes a checkpoint, it reads the files a second time. They may have changed since.
static void a_file_that_is_no_object(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    copy(s, "data/bpe", "vocab.json");
    copy(s, "data/bpe", "merges.txt");
    struct rlhf__tokenizer *tok = open_dir(s->dir);
    rlhf__tokenizer_set_bos(tok, 1);
    scratch_text(s, "tokenizer_config.json", "[1]");
    struct rlhf__folder *dir = scratch_folder(s->dir);
    check_error(rlhf__tokenizer_write_frame(tok, dir, &err), RLHF_E_INVALID, &err,
                "/tokenizer_config.json: expected an object, found a list");
    rlhf__folder_close(dir);
    rlhf__tokenizer_close(tok);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(classic_files), TEST(tokenizer_json), TEST(add_bos_token_beside_tokenizer_json),
        TEST(nothing_changed_nothing_written), TEST(a_file_that_is_no_object)};
    return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
