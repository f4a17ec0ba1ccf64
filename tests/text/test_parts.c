// test_parts.c: single normalizers and pre-tokenizers give the results of the tokenizers library
// for odd texts (data/parts.jsonl, see make_parts.py).
#include "support/scratch.h"

#include "base/json.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"

struct parts {
    struct rlhf__works works;
    struct rlhf__work *work;
};

static json_t *normal_of(struct parts *p, const struct rlhf__normalizer *n, const json_t *text) {
    struct rlhf__error err = {0};
    check_ok(rlhf__normalizer_apply(n, json_string_value(text), json_string_length(text),
                                    &p->work->search, &p->work->normal, &p->work->spare, &err),
             &err);
    return json_stringn(rlhf__buf_text(&p->work->normal), p->work->normal.len);
}

static json_t *pieces_of(struct parts *p, const struct rlhf__pre_tokenizer *pre,
                         const json_t *text) {
    struct rlhf__error err = {0};
    const struct rlhf__pieces *got = &p->work->pieces;
    check_ok(rlhf__pre_tokenizer_cut(pre, p->work, json_string_value(text),
                                     json_string_length(text), 1, &err),
             &err);
    json_t *list = json_array();
    for (size_t i = 0; i < got->n; i++)
        json_array_append_new(list, json_stringn(got->text + got->item[i].at, got->item[i].n));
    return list;
}

static void check_line(struct parts *p, const json_t *line) {
    const json_t *normal = json_object_get(line, "normalizer"), *item;
    const json_t *part = normal ? normal : json_object_get(line, "pre_tokenizer");
    struct rlhf__normalizer *n = NULL;
    struct rlhf__pre_tokenizer *pre = NULL;
    struct rlhf__error err = {0};
    check_ok(normal ? rlhf__normalizer_open(part, &n, &err)
                    : rlhf__pre_tokenizer_open(part, &pre, &err),
             &err);
    size_t i;
    json_array_foreach(json_object_get(line, "cases"), i, item) {
        const json_t *text = json_array_get(item, 0), *want = json_array_get(item, 1);
        json_t *got = normal ? normal_of(p, n, text) : pieces_of(p, pre, text);
        if (!json_equal(got, want)) {
            char *a = json_dumps(got, JSON_ENCODE_ANY), *b = json_dumps(want, JSON_ENCODE_ANY);
            fail_msg("%s of %s: %s, expected %s", json_dumps(part, 0), json_string_value(text), a,
                     b);
        }
        json_decref(got);
    }
    rlhf__normalizer_close(n);
    rlhf__pre_tokenizer_close(pre);
}

static void as_the_library_does(void **state) {
    struct parts p = {0};
    struct rlhf__error err = {0};
    FILE *f = fopen("data/parts.jsonl", "r");
    char *line = NULL;
    size_t cap = 0, lines = 0;
    (void)state;
    assert_non_null(f);
    rlhf__works_init(&p.works);
    check_ok(rlhf__works_take(&p.works, &p.work, &err), &err);
    for (ssize_t n; (n = getline(&line, &cap, f)) > 0; lines++) {
        json_t *row = rlhf__json_decode(line, (size_t)n, JSON_ALLOW_NUL, NULL);
        assert_non_null(row);
        check_line(&p, row);
        json_decref(row);
    }
    assert_true(lines > 60);
    rlhf__works_give(&p.works, p.work);
    rlhf__works_finish(&p.works);
    free(line);
    fclose(f);
}

// Each invalid UTF-8 byte is a separate piece. Nothing is prepended to the text that follows it.
static void ill_formed_bytes(void **state) {
    struct parts p = {0};
    struct rlhf__error err = {0};
    struct rlhf__pre_tokenizer *pre = NULL;
    static const char *const want[] = {"\xE2\x96\x81"
                                       "a",
                                       "\xFF\xC3", "b",
                                       "\xE2\x96\x81"
                                       "c"};
    json_t *part = json_pack("{s:s, s:s}", "type", "Metaspace", "replacement", "\xE2\x96\x81");
    (void)state;
    rlhf__works_init(&p.works);
    check_ok(rlhf__works_take(&p.works, &p.work, &err), &err);
    check_ok(rlhf__pre_tokenizer_open(part, &pre, &err), &err);
    check_ok(rlhf__pre_tokenizer_cut(pre, p.work,
                                     "a\xFF\xC3"
                                     "b c",
                                     6, 1, &err),
             &err);
    assert_int_equal(p.work->pieces.n, 4);
    for (size_t i = 0; i < 4; i++) {
        const struct rlhf__text_piece *got = &p.work->pieces.item[i];
        assert_int_equal(got->n, strlen(want[i]));
        assert_memory_equal(p.work->pieces.text + got->at, want[i], got->n);
    }
    json_decref(part);
    rlhf__pre_tokenizer_close(pre);
    rlhf__works_give(&p.works, p.work);
    rlhf__works_finish(&p.works);
}

static void expect_refused(int normal, const char *text, rlhf_status code, const char *part) {
    struct rlhf__normalizer *n = NULL;
    struct rlhf__pre_tokenizer *pre = NULL;
    struct rlhf__error err = {0};
    json_t *json = rlhf__json_decode(text, strlen(text), 0, NULL);
    assert_non_null(json);
    check_error(normal ? rlhf__normalizer_open(json, &n, &err)
                       : rlhf__pre_tokenizer_open(json, &pre, &err),
                code, &err, part);
    assert_true(!n && !pre);
    json_decref(json);
}

static void refused(void **state) {
    (void)state;
    static const struct {
        int normal;
        const char *text;
        rlhf_status code;
        const char *part;
    } cases[] = {
        {1, "{\"type\":\"Nmt\"}", RLHF_E_UNSUPPORTED, "the normalizer 'Nmt' is not supported"},
        {1, "{\"type\":\"Precompiled\"}", RLHF_E_UNSUPPORTED, "the normalizer 'Precompiled'"},
        {1, "{\"type\":\"Prepend\"}", RLHF_E_INVALID,
         "the normalizer Prepend: prepend: expected a text, found missing"},
        {1, "{\"type\":\"Replace\",\"content\":\"\",\"pattern\":{\"Regex\":\"a(\"}}",
         RLHF_E_UNSUPPORTED,
         "the normalizer Replace: the pattern \"a(\" is not supported: it has a ( without its )"},
        {1, "{\"type\":\"Replace\",\"content\":\"\",\"pattern\":{\"String\":\"\"}}", RLHF_E_INVALID,
         "found an empty text"},
        {1, "{\"type\":\"Sequence\",\"normalizers\":{}}", RLHF_E_INVALID,
         "normalizers: expected an array, found an object"},
        {0, "{\"type\":\"UnicodeScripts\"}", RLHF_E_UNSUPPORTED, "'UnicodeScripts' is not"},
        {0, "{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"isolated\"}",
         RLHF_E_INVALID, "the pre_tokenizer Split: behavior: expected Removed, Isolated"},
        {0, "{\"type\":\"Split\",\"behavior\":\"Isolated\"}", RLHF_E_INVALID,
         "the pre_tokenizer Split: pattern: expected {\"Regex\": text}"},
        {0, "{\"type\":\"Metaspace\",\"replacement\":\"ab\"}", RLHF_E_INVALID,
         "replacement: expected one character, found 'ab'"},
        {0, "{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"last\"}",
         RLHF_E_INVALID, "prepend_scheme: expected always, first or never, found 'last'"},
        {0, "{\"type\":\"Metaspace\",\"replacement\":\"_\",\"add_prefix_space\":false}",
         RLHF_E_INVALID, "contradicts its prepend_scheme"},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++)
        expect_refused(cases[i].normal, cases[i].text, cases[i].code, cases[i].part);
}

// Applies these normalizer steps to a text that repeats `text` `times` times. A step doubles its
// buffers as they fill. So at 64 MiB it stops before it has produced the whole text.
static rlhf_status normalize(json_t *steps, const char *text, size_t times,
                             struct rlhf__error *err) {
    struct rlhf__normalizer *n = NULL;
    struct rlhf__buf in = RLHF__BUF_INIT, out = RLHF__BUF_INIT, spare = RLHF__BUF_INIT;
    struct rlhf__search match = {0};
    json_t *all = json_pack("{s:s, s:o}", "type", "Sequence", "normalizers", steps);
    for (size_t i = 0; i < times; i++)
        rlhf__buf_puts(&in, text);
    check_ok(rlhf__normalizer_open(all, &n, err), err);
    const rlhf_status st =
        rlhf__normalizer_apply(n, rlhf__buf_text(&in), in.len, &match, &out, &spare, err);
    rlhf__search_finish(&match);
    assert_in_range(out.cap, 0, (size_t)128 << 20);
    assert_in_range(spare.cap, 0, (size_t)128 << 20);
    rlhf__normalizer_close(n);
    rlhf__buf_finish(&in);
    rlhf__buf_finish(&out);
    rlhf__buf_finish(&spare);
    json_decref(all);
    return st;
}

// A tokenizer.json cannot make a text longer than 64 MiB.
static void no_step_makes_a_text_too_long(void **state) {
    struct rlhf__error err = {0};
    char content[4097];
    (void)state;
    memset(content, 'a', sizeof content - 1);
    content[sizeof content - 1] = '\0';
    static const char *const patterns[] = {"String", "Regex"};
    for (int i = 0; i < 2; i++) {
#define REPLACE                                                                                    \
    json_pack("[{s:s, s:{s:s}, s:s}]", "type", "Replace", "pattern", patterns[i], "a", "content",  \
              content)
        check_ok(normalize(REPLACE, "a", 16000, &err), &err);
        check_error(normalize(REPLACE, "a", 40000, &err), RLHF_E_UNSUPPORTED, &err,
                    "the normalizer makes a text longer than 64 MiB");
    }
    check_error(normalize(json_pack("[{s:s}]", "type", "NFKD"), "\xEF\xB7\xBA", 2100000, &err),
                RLHF_E_UNSUPPORTED, &err, "the normalizer makes a text longer than 64 MiB");
    check_error(normalize(json_pack("[{s:s, s:s}]", "type", "Prepend", "prepend", "a"), content,
                          16384, &err),
                RLHF_E_UNSUPPORTED, &err, "the normalizer makes a text longer than 64 MiB");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_library_does), cmocka_unit_test(ill_formed_bytes),
        cmocka_unit_test(refused), cmocka_unit_test(no_step_makes_a_text_too_long)};
    return cmocka_run_group_tests_name("parts of tokenizer.json", tests, NULL, NULL);
}
