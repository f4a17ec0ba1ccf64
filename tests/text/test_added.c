// test_added.c: added tokens in texts, and whole tokenizers of the common forms, compared with
// results of the Python `tokenizers` library for data/added.jsonl and data/forms.jsonl (made by
// make_vectors.py). Also tests many added tokens, and contradictory files.
#include "support/scratch.h"

#include "base/json.h"
#include "text/added.h"
#include "tokenizer/tokenizer.h"

static struct rlhf__tokenizer *open_dir(struct scratch *s) {
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__error err = {0};
    check_ok(rlhf__tokenizer_open(s->dir, &tok, &err), &err);
    return tok;
}

static void write_json(struct scratch *s, const char *name, json_t *v) {
    char *text = json_dumps(v, 0);
    assert_non_null(text);
    scratch_text(s, name, text);
    free(text);
}

// ---- compared with the library ----

static void expect_ids(const struct rlhf__tokenizer *tok, const json_t *row, size_t at,
                       uint32_t flags) {
    const json_t *text = json_array_get(row, 0), *want = json_array_get(row, at);
    rlhf_str s = {json_string_value(text), json_string_length(text)};
    struct rlhf__ids ids = {0};
    struct rlhf__error err = {0};
    check_ok(rlhf__tokenizer_encode(tok, s, flags, 0, &ids, &err), &err);
    size_t same = 0, n = json_array_size(want);
    while (same < n && same < ids.n &&
           json_integer_value(json_array_get(want, same)) == ids.data[same])
        same++;
    if (same < n || same < ids.n)
        fail_msg("\"%s\" (flags %u): %zu ids, expected %zu; first difference at %zu", s.ptr, flags,
                 ids.n, n, same);
    for (uint32_t skip = 0; at == 1 && skip < 2; skip++) {
        char *back = rlhf__tokenizer_text(tok, ids.data, ids.n, skip, NULL);
        assert_string_equal(back, json_string_value(json_array_get(row, 3 + skip)));
        free(back);
    }
    rlhf__ids_finish(&ids);
}

static void check_file(struct scratch *s, const char *name, size_t at_least) {
    char *line = NULL;
    size_t cap = 0, sets = 0, i;
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    for (; getline(&line, &cap, file) > 0; sets++) {
        json_t *set = json_loads(line, 0, NULL);
        const json_t *row;
        assert_non_null(set);
        write_json(s, "tokenizer.json", json_object_get(set, "file"));
        struct rlhf__tokenizer *tok = open_dir(s);
        json_array_foreach(json_object_get(set, "rows"), i, row) {
            expect_ids(tok, row, 1, RLHF__ENCODE_SPECIAL | RLHF__ENCODE_TEMPLATE);
            expect_ids(tok, row, 2, 0);
        }
        rlhf__tokenizer_close(tok);
        json_decref(set);
    }
    assert_true(sets >= at_least);
    free(line);
    fclose(file);
}

static void as_the_library(void **state) { check_file(*state, "data/added.jsonl", 5); }

static void forms_of_families(void **state) { check_file(*state, "data/forms.jsonl", 10); }

// ---- the search ----

// Returns the longest of the texts that s begins with. Compares s with each of them.
static size_t longest(char (*text)[8], size_t n, const char *s) {
    size_t found = n;
    for (size_t i = 0; i < n; i++)
        if (*text[i] && !strncmp(s, text[i], strlen(text[i])) &&
            (found == n || strlen(text[i]) > strlen(text[found])))
            found = i;
    return found;
}

static void finds_what_is_there(void **state) {
    (void)state;
    uint32_t seed = 1;
    struct rlhf__error err = {0};
    for (int round = 0; round < 300; round++) {
        char text[40][8] = {{0}}, in[65] = {0};
        struct rlhf__matcher m = {0};
        size_t n = (size_t)round % 40;
        for (size_t i = 0; i < n + 1; i++) { // made of few letters, so that they share prefixes
            char *to = i < n ? text[i] : in;
            for (size_t k = 0; k < (i < n ? (seed >> 20) % 6 : 64); k++) {
                seed = seed * 1664525 + 1013904223;
                to[k] = "ab\xFF"[(seed >> 16) % 3];
            }
            if (i < n) check_ok(rlhf__matcher_add(&m, to, strlen(to), (uint32_t)i, &err), &err);
        }
        rlhf__matcher_sort(&m);
        struct rlhf__match got = {0};
        for (size_t at = 0; at < 64; at++) {
            size_t want = longest(text, n, in + at);
            if (want == n) continue;
            assert_true(rlhf__matcher_next(&m, in, 64, got.end <= at ? at : got.end, &got));
            assert_int_equal(got.begin, at);
            assert_int_equal(got.value, want);
            assert_int_equal(got.end, at + strlen(text[want]));
            at = got.end - 1;
        }
        assert_false(rlhf__matcher_next(&m, in, 64, 64, &got));
        rlhf__matcher_finish(&m);
    }
}

// ---- files ----

// Makes a tokenizer.json of 256 bytes and these entries.
static void write_file(struct scratch *s, json_t *added) {
    char *line = NULL;
    size_t cap = 0;
    FILE *in = fopen("data/added.jsonl", "r");
    assert_non_null(in);
    assert_true(getline(&line, &cap, in) > 0);
    fclose(in);
    json_t *set = json_loads(line, 0, NULL), *file = json_object_get(set, "file");
    json_object_set_new(file, "added_tokens", added);
    write_json(s, "tokenizer.json", file);
    json_decref(set);
    free(line);
}

static void a_thousand_tokens(void **state) {
    struct scratch *s = *state;
    json_t *added = json_array();
    for (int i = 0; i < 1000; i++)
        json_array_append_new(added,
                              json_pack("{s:i, s:s++, s:b}", "id", 256 + i, "content",
                                        "<|reserved_", i % 2 ? "odd_" : "",
                                        (char[]){(char)('a' + i / 100), (char)('a' + i / 10 % 10),
                                                 (char)('a' + i % 10), 0},
                                        "special", i % 2));
    write_file(s, added);
    struct rlhf__tokenizer *tok = open_dir(s);
    struct rlhf__ids ids = {0};
    struct rlhf__error err = {0};
    const char *text = "<|reserved_odd_jjj<|reserved_jji<|reserved_odd_jji<|reserved_jjj";
    check_ok(rlhf__tokenizer_encode(tok, (rlhf_str){text, strlen(text)}, RLHF__ENCODE_SPECIAL, 0,
                                    &ids, &err),
             &err);
    assert_int_equal(ids.data[0], 1255);
    assert_int_equal(ids.data[1], 1254);
    assert_int_equal(ids.n, 2 + strlen("<|reserved_odd_jji<|reserved_jjj"));
    assert_int_equal(rlhf__tokenizer_find(tok, (rlhf_str){"<|reserved_aaa", 14}), 256);
    assert_false(rlhf__tokenizer_is_special(tok, 256));
    assert_true(rlhf__tokenizer_is_special(tok, 257));
    rlhf__ids_finish(&ids);
    rlhf__tokenizer_close(tok);
}

static json_t *entry(int id, const char *content) {
    return json_pack("{s:i, s:s, s:b, s:b}", "id", id, "content", content, "special", 1,
                     "normalized", 0);
}

static void expect_error(struct scratch *s, const char *part) {
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__error err = {0};
    check_error(rlhf__tokenizer_open(s->dir, &tok, &err), RLHF_E_INVALID, &err, part);
    assert_null(tok);
}

static void ids_that_the_library_does_not_give(void **state) {
    struct scratch *s = *state;
    write_file(s, json_pack("[o]", entry(300, "<x>")));
    expect_error(s, "tokenizer.json: the added token '<x>' has the id 300, but the tokenizers "
                    "library assigns 256");
    write_file(s, json_pack("[oo]", entry(256, "<x>"), entry(258, "<y>")));
    expect_error(s, "'<y>' has the id 258, but the tokenizers library assigns 257");
    write_file(s, json_pack("[o]", entry(256, "a")));
    expect_error(s, "'a' has the id 256, but the tokenizers library assigns 64: the vocabulary "
                    "already has the token");
    write_file(s, json_pack("[o]", entry(64, "b")));
    expect_error(s, "the added token 'b' has the id 64 of 'a'");
    write_file(s, json_pack("[o]", entry(220, " "))); // the vocabulary uses a replacement character
    expect_error(s, "the added token ' ' has the id 220 of ' '");
    write_file(s, json_pack("[oo]", entry(256, "<x>"), entry(256, "<x>")));
    expect_error(s, "added_tokens: '<x>' is listed twice");
    write_file(s, json_pack("[o]", entry(256, "")));
    expect_error(s, "an added token is empty");
    write_file(s, json_pack("[{s:i, s:s, s:i}]", "id", 256, "content", "<x>", "lstrip", 1));
    expect_error(s, "the added token '<x>': lstrip is");
}

static void tokenizer_config_contradicts(void **state) {
    struct scratch *s = *state;
    static const char *const cases[][2] = {
        {"{\"256\":{\"content\":\"<y>\"}}", "the added token '<y>' has the id 256 of '<x>'"},
        {"{\"257\":{\"content\":\"<x>\"}}", "the added token '<x>' has the ids 256 and 257"},
        {"{\"256\":{\"content\":\"<x>\",\"lstrip\":true}}",
         "tokenizer_config.json: the added token '<x>' has lstrip = true here and false in "
         "tokenizer.json"},
        {"{\"256\":{\"content\":\"<x>\",\"special\":false}}", "has special = false here and true"},
        {"{\"256\":{\"content\":\"<x>\",\"normalized\":true}}", "has normalized = true here"},
        {"{\"259\":{\"content\":\"<z>\"}}",
         "'<z>' has the id 259, but the tokenizers library assigns 257"},
    };
    write_file(s, json_pack("[o]", entry(256, "<x>")));
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        char text[256];
        snprintf(text, sizeof text, "{\"added_tokens_decoder\":%s}", cases[i][0]);
        scratch_text(s, "tokenizer_config.json", text);
        expect_error(s, cases[i][1]);
    }
    // Two files may list the same token if its id is the same. A file may add a token if its id is
    // the next free one.
    scratch_text(s, "tokenizer_config.json",
                 "{\"added_tokens_decoder\":{\"256\":{\"content\":\"<x>\",\"special\":true},"
                 "\"257\":{\"content\":\"<z>\",\"lstrip\":true}}}");
    scratch_text(s, "added_tokens.json", "{\"<x>\": 256}");
    struct rlhf__tokenizer *tok = open_dir(s);
    struct rlhf__ids ids = {0};
    struct rlhf__error err = {0};
    check_ok(
        rlhf__tokenizer_encode(tok, (rlhf_str){"<x>  <z>", 8}, RLHF__ENCODE_SPECIAL, 0, &ids, &err),
        &err);
    assert_int_equal(ids.n, 2);
    assert_int_equal(ids.data[1], 257);
    rlhf__ids_finish(&ids);
    rlhf__tokenizer_close(tok);
    scratch_text(s, "added_tokens.json", "{\"<x>\": 257}");
    expect_error(s, "added_tokens.json: the added token '<x>' has the ids 256 and 257");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(as_the_library),
        TEST(forms_of_families),
        cmocka_unit_test(finds_what_is_there),
        TEST(a_thousand_tokens),
        TEST(ids_that_the_library_does_not_give),
        TEST(tokenizer_config_contradicts),
    };
    return cmocka_run_group_tests_name("added tokens", tests, NULL, NULL);
}
