// test_dataset.c: rows of JSON Lines, gzip and text files, and messages about bad rows.
#include "support/scratch.h"

#include "data/dataset.h"

#include <unistd.h>
#include <zlib.h>

#define TEXT  RLHF__FIELD_BIT(RLHF__FIELD_TEXT)
#define LABEL RLHF__FIELD_BIT(RLHF__FIELD_LABEL)

static const char *gz(struct scratch *s, const char *name, const char *text) {
    const char *path = scratch_path(s, name);
    gzFile f = gzopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(gzwrite(f, text, (unsigned)strlen(text)), strlen(text));
    assert_int_equal(gzclose(f), Z_OK);
    return path;
}

static struct rlhf__dataset *expect_open(const struct rlhf__dataset_opts *o) {
    struct rlhf__dataset *ds = NULL;
    struct rlhf__error err = {0};
    check_ok(rlhf__dataset_open(o, &ds, &err), &err);
    return ds;
}

static void expect_error(struct rlhf__dataset_opts o, const char *path, rlhf_status code,
                         const char *part) {
    struct rlhf__dataset *ds = NULL;
    struct rlhf__error err = {0};
    const char *paths[] = {path};
    o.paths = paths;
    o.n_paths = 1;
    check_error(rlhf__dataset_open(&o, &ds, &err), code, &err, part);
    assert_null(ds);
}

static void check_str(rlhf_str got, const char *want) {
    assert_int_equal(got.len, strlen(want));
    assert_memory_equal(got.ptr, want, got.len);
}

static void fields(void **state) {
    const char *paths[] = {
        scratch_text(*state, "a.jsonl",
                     "\xEF\xBB\xBF{\"text\": \"one \\u00e9\\n\", \"label\": 1, \"id\": 7}\r\n"
                     "\n"
                     "  {\"text\": \"\", \"prompt\": \"p\", \"label\": 0, \"id\": "
                     "10000000000000000000000}\n"),
        gz(*state, "b.jsonl.gz", "{\"text\": \"three\"}"), // without a newline at the end
    };
    struct rlhf__dataset_opts o = {.paths = paths, .n_paths = 2, .need = TEXT, .want = LABEL};
    o.keep_meta = 1;
    struct rlhf__dataset *ds = expect_open(&o);
    assert_int_equal(rlhf__dataset_rows(ds), 3);
    assert_int_equal(rlhf__dataset_labels(ds), 2);
    struct rlhf__data_row row = rlhf__dataset_row(ds, 0);
    check_str(row.text[RLHF__FIELD_TEXT], "one \xC3\xA9\n");
    check_str(row.meta, "{\"text\": \"one \\u00e9\\n\", \"label\": 1, \"id\": 7}");
    assert_int_equal(row.label, 1);
    row = rlhf__dataset_row(ds, 1);
    assert_non_null(row.text[RLHF__FIELD_TEXT].ptr); // empty, but present
    assert_null(row.text[RLHF__FIELD_PROMPT].ptr);   // present, but not requested
    assert_int_equal(row.line, 3);
    row = rlhf__dataset_row(ds, 2);
    check_str(row.text[RLHF__FIELD_TEXT], "three");
    assert_int_equal(row.label, -1);
    assert_int_equal(row.file, 1);
    char where[600];
    rlhf__dataset_where(ds, 2, where, sizeof where);
    assert_non_null(strstr(where, "b.jsonl.gz:1"));
    rlhf__dataset_close(ds);
}

static void named_fields_and_labels(void **state) {
    const char *paths[] = {
        scratch_text(*state, "a.jsonl",
                     "{\"review\": \"x\", \"mood\": \"POS\"}\n{\"review\": \"y\", \"mood\": 0}\n")};
    static const char *const labels[] = {"NEG", "POS"};
    struct rlhf__dataset_opts o = {.paths = paths, .n_paths = 1, .need = TEXT | LABEL};
    o.name[RLHF__FIELD_TEXT] = "review";
    o.name[RLHF__FIELD_LABEL] = "mood";
    o.labels = labels;
    o.n_labels = 2;
    struct rlhf__dataset *ds = expect_open(&o);
    assert_int_equal(rlhf__dataset_row(ds, 0).label, 1);
    assert_int_equal(rlhf__dataset_row(ds, 1).label, 0);
    rlhf__dataset_close(ds);
    scratch_text(*state, "a.jsonl", "{\"review\": \"x\", \"mood\": \"MEH\"}\n");
    expect_error(o, paths[0], RLHF_E_INVALID,
                 "a.jsonl:1: field 'mood' is 'MEH', which is not a label");
    scratch_text(*state, "a.jsonl", "{\"review\": \"x\", \"mood\": 2}\n");
    expect_error(o, paths[0], RLHF_E_INVALID, "field 'mood' is 2; allowed: 0 to 1");
    o.labels = NULL;
    scratch_text(*state, "a.jsonl", "{\"review\": \"x\", \"mood\": \"POS\"}\n");
    expect_error(o, paths[0], RLHF_E_INVALID, "expected an integer");
}

static void text_files(void **state) {
    const char *paths[] = {scratch_text(*state, "a.txt", "first\r\n\n   \n {not json}\nlast")};
    struct rlhf__dataset_opts o = {.paths = paths, .n_paths = 1, .need = TEXT, .keep_meta = 1};
    struct rlhf__dataset *ds = expect_open(&o);
    assert_int_equal(rlhf__dataset_rows(ds), 3);
    check_str(rlhf__dataset_row(ds, 0).text[0], "first");
    check_str(rlhf__dataset_row(ds, 1).text[0], " {not json}");
    check_str(rlhf__dataset_row(ds, 2).text[0], "last");
    assert_int_equal(rlhf__dataset_row(ds, 2).line, 5);
    assert_null(rlhf__dataset_row(ds, 2).meta.ptr);
    rlhf__dataset_close(ds);
    o.need |= LABEL;
    expect_error(o, paths[0], RLHF_E_INVALID, "a text file has no field 'label'");
}

static void skip_and_limit(void **state) {
    const char *paths[] = {scratch_text(*state, "a.txt", "0\n1\n\n2\n"),
                           scratch_text(*state, "b.txt", "3\n4\n")};
    struct rlhf__dataset_opts o = {
        .paths = paths, .n_paths = 2, .need = TEXT, .skip = 2, .limit = 2};
    struct rlhf__dataset *ds = expect_open(&o);
    assert_int_equal(rlhf__dataset_rows(ds), 2);
    check_str(rlhf__dataset_row(ds, 0).text[0], "2");
    check_str(rlhf__dataset_row(ds, 1).text[0], "3");
    rlhf__dataset_close(ds);
    o.skip = 9;
    struct rlhf__error err = {0};
    check_error(rlhf__dataset_open(&o, &ds, &err), RLHF_E_INVALID, &err,
                "the data has 5 and 9 are skipped");
}

static void bad_rows(void **state) {
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"{\"text\": \"ok\"}\n{\"txt\": \"no\"}\n", "a.jsonl:2: the row has no field 'text'"},
        {"{\"text\": 3}\n", "a.jsonl:1: field 'text' is an integer, expected a string"},
        {"{\"text\": \"x\", \"label\": 1.5}\n", "field 'label' is a number, expected an integer"},
        {"{\"text\": \"x\", \"label\": -1}\n", "field 'label' is -1"},
        {"{\"text\": \"x\"\n", "a.jsonl:1:12: not valid JSON"},
        {"{\"text\": \"x\", \"text\": \"y\"}\n", "not valid JSON: duplicate"},
        {"{\"text\": \"x\"} tail\n", "not valid JSON"},
        {"{\"text\": \"ok\"}\n[1]\n", "a.jsonl:2: the row is a list, expected an object"},
        {"[\n{\"text\": \"x\"}\n]\n", "a.jsonl:1: a JSON list, expected JSON Lines"},
        {"{\"text\": \"ok\"}\n\n{\"text\": \"\xC3(\"}\n", "a.jsonl:3: invalid UTF-8 at byte 11"},
        {"{\"text\": \"\\ud800\"}\n", "not valid JSON"},
        {"", "a.jsonl: the file has no rows"},
        {"\n \n", "a.jsonl: the file has no rows"},
    };
    struct rlhf__dataset_opts o = {.need = TEXT, .want = LABEL};
    for (size_t i = 0; i < CHECK_COUNT(cases); i++)
        expect_error(o, scratch_text(*state, "a.jsonl", cases[i].text), RLHF_E_INVALID,
                     cases[i].part);
}

static void bad_files(void **state) {
    struct scratch *s = *state;
    struct rlhf__dataset_opts o = {.need = TEXT};
    expect_error(o, scratch_path(s, "none.jsonl"), RLHF_E_INVALID, "No such file");
    expect_error(o, s->dir, RLHF_E_INVALID, "is a directory");
    struct rlhf__error err = {0};
    struct rlhf__dataset *ds = NULL;
    check_error(rlhf__dataset_open(&o, &ds, &err), RLHF_E_INVALID, &err, "no data file");
}

static void truncated_and_damaged_gzip(void **state) {
    struct scratch *s = *state;
    struct rlhf__dataset_opts o = {.need = TEXT};
    char rows[20000] = "";
    size_t n = 0;
    for (unsigned i = 0, x = 1; n < sizeof rows - 64; i++, x = x * 1103515245u + 12345u)
        n += (size_t)snprintf(rows + n, sizeof rows - n, "{\"text\": \"%u %08x\"}\n", i, x);
    const char *path = gz(s, "a.jsonl.gz", rows);
    struct rlhf__buf bytes = RLHF__BUF_INIT;
    struct rlhf__error err = {0};
    check_ok(rlhf__file_read(path, 1 << 20, &bytes, &err), &err);
    for (size_t cut = 1; cut < 40; cut += 7) {
        scratch_bytes(s, "b.jsonl.gz", bytes.data, bytes.len - cut);
        expect_error(o, scratch_path(s, "b.jsonl.gz"), RLHF_E_INVALID, "gzip file is truncated");
    }
    bytes.data[bytes.len / 2] ^= 0x55;
    scratch_bytes(s, "b.jsonl.gz", bytes.data, bytes.len);
    expect_error(o, scratch_path(s, "b.jsonl.gz"), RLHF_E_INVALID, "b.jsonl.gz");
    rlhf__buf_finish(&bytes);
}

static void long_lines(void **state) {
    size_t n = 3000000;
    char *text = malloc(n + 64);
    assert_non_null(text);
    size_t at = (size_t)sprintf(text, "{\"text\": \"");
    memset(text + at, 'x', n);
    memcpy(text + at + n, "\"}\n{\"text\": \"y\"}\n", 18);
    const char *paths[] = {scratch_text(*state, "a.jsonl", text)};
    free(text);
    struct rlhf__dataset_opts o = {.paths = paths, .n_paths = 1, .need = TEXT};
    struct rlhf__dataset *ds = expect_open(&o);
    assert_int_equal(rlhf__dataset_row(ds, 0).text[0].len, n);
    check_str(rlhf__dataset_row(ds, 1).text[0], "y");
    rlhf__dataset_close(ds);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(fields),     TEST(named_fields_and_labels),
        TEST(text_files), TEST(skip_and_limit),
        TEST(bad_rows),   TEST(bad_files),
        TEST(long_lines), TEST(truncated_and_damaged_gzip),
    };
    return cmocka_run_group_tests_name("dataset", tests, NULL, NULL);
}
