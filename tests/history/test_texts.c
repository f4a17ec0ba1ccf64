// test_texts.c: texts of a run whose samples.jsonl is large.
#include "support/scratch.h"

#include "history/texts.h"

#include <string.h>

enum { LONG = 20000, ROWS = 900 }; // LONG: approximate bytes of a line; the lines have 18 MB

static void put(struct rlhf__buf *out, int phase, const char *prompt, size_t length) {
    rlhf__buf_printf(out, "{\"phase\": %d, \"reward\": 1, \"prompt\": \"%s\", \"response\": \"",
                     phase, prompt);
    char *text = rlhf__buf_grow(out, length);
    if (text) memset(text, 'a', length);
    rlhf__buf_puts(out, "\"}\n");
}

// At most 16 MiB of a phase's rows are kept. Later rows are ignored.
static void a_phase_of_long_rows(void **state) {
    struct scratch *s = *state;
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__error err = {0};
    struct rlhf__run_files run;
    json_t *out;
    put(&text, 1, "early", LONG);
    for (int i = 2; i < ROWS; i++)
        put(&text, 1, "another", LONG);
    put(&text, 1, "late", LONG);
    put(&text, 2, "late", 10);
    put(&text, 2, "early", 10);
    assert_int_equal(rlhf__buf_ok(&text, &err), RLHF_OK);
    scratch_text(s, "samples.jsonl", rlhf__buf_text(&text));
    scratch_text(s, "config.json", "{}");
    rlhf__buf_finish(&text);
    check_ok(rlhf__run_files_open(s->dir, &run, &err), &err);
    check_ok(rlhf__texts_read(&run, &out, &err), &err);
    const json_t *rows = json_object_get(json_array_get(out, 0), "rows");
    assert_int_equal(json_array_size(rows), 1);
    const json_t *cell = json_array_get(json_array_get(rows, 0), 0);
    assert_string_equal(json_string_value(json_object_get(cell, "prompt")), "early");
    json_decref(out);
    rlhf__run_files_close(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_phase_of_long_rows, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("history_texts", tests, NULL, NULL);
}
