// test_metadata.c: a file's note describes the same as the opened file, errors included, and
// invalid bytes do not harm the reader.
#include "plugin/modules.h"

#include "base/file.h"
#include "plugin/metadata.h"

static int setup(void **state) {
    struct rlhf__metadata *m = calloc(1, sizeof *m);
    *state = m;
    return m ? 0 : -1;
}

static int teardown(void **state) {
    struct rlhf__metadata *m = *state;
    rlhf__metadata_finish(m);
    free(m);
    return 0;
}

static void kernels_path(const char *name, char out[1024]) {
    snprintf(out, 1024, "%s/lib/rlhf/0/kernels/%s", getenv("RLHF_BUILD_DIR"), name);
}

static void check_same_text(const char *a, const char *b) {
    assert_int_equal(!a, !b);
    if (a) assert_string_equal(a, b);
}

static void check_same_option(const rlhf_opt *a, const rlhf_opt *b) {
    check_same_text(a->key, b->key);
    check_same_text(a->help, b->help);
    check_same_text(a->s_def, b->s_def);
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->offset, b->offset);
    assert_int_equal(a->i_def, b->i_def);
    assert_int_equal(a->i_min, b->i_min);
    assert_int_equal(a->i_max, b->i_max);
    assert_memory_equal(&a->f_def, &b->f_def, 3 * sizeof a->f_def);
    assert_int_equal(!a->choices, !b->choices);
    for (size_t i = 0; a->choices && (a->choices[i] || b->choices[i]); i++)
        assert_string_equal(a->choices[i], b->choices[i]);
}

// From the note and from the opened file.
static void check_same(const struct rlhf__plugin *a, const struct rlhf__plugin *b) {
    check_same_text(a->desc.id, b->desc.id);
    check_same_text(a->desc.version, b->desc.version);
    check_same_text(a->desc.summary, b->desc.summary);
    check_same_text(a->path, b->path);
    check_same_text(a->stem, b->stem);
    check_same_text(a->sha256, b->sha256);
    assert_int_equal(a->desc.kind, b->desc.kind);
    assert_int_equal(a->desc.state_version, b->desc.state_version);
    assert_int_equal(a->desc.config_size, b->desc.config_size);
    assert_int_equal(!a->desc.create, !b->desc.create);
    assert_int_equal(!a->desc.idle, !b->desc.idle);
    assert_int_equal(a->table.n, b->table.n);
    for (uint32_t i = 0; i < a->table.n; i++) {
        rlhf_opt x, y;
        rlhf__opt_at(&a->table, i, &x);
        rlhf__opt_at(&b->table, i, &y);
        check_same_option(&x, &y);
    }
}

static void check_file(const char *path) {
    struct rlhf__dirs dirs;
    struct rlhf__error err = {0};
    struct rlhf__metadata m;
    struct rlhf__plugins *plugins = loader(&dirs, "/");
    const struct rlhf__plugin **opened;
    char real[RLHF__PATH_CAP];
    size_t n;
    assert_non_null(rlhf__path_real(path, real));
    check_ok(rlhf__metadata_read(real, &m, &err), &err);
    assert_int_equal(m.found, RLHF__METADATA_READ);
    check_ok(rlhf__plugin_open_file(plugins, path, &opened, &n, &err), &err);
    assert_int_equal(m.n, n);
    for (size_t i = 0; i < n; i++)
        check_same(&m.plugin[i], opened[i]);
    free(opened);
    rlhf__metadata_finish(&m);
    rlhf__plugins_destroy(plugins);
}

static void it_says_what_the_opened_file_says(void **state) {
    static const char *const own[] = {"sample.so", "packed.so", "algo.so", "several.so",
                                      "long_zero.so"};
    static const char *const shipped[] = {"algos/ppo",      "algos/grpo_iterative", "rewards/imdb",
                                          "rewards/format", "models/gpt2",          "models/qwen"};
    char path[1024];
    (void)state;
    for (size_t i = 0; i < CHECK_COUNT(own); i++)
        check_file(module_path(own[i], path));
    for (size_t i = 0; i < CHECK_COUNT(shipped); i++) {
        snprintf(path, sizeof path, "%s/lib/rlhf/0/%s.so", getenv("RLHF_BUILD_DIR"), shipped[i]);
        check_file(path);
    }
}

static void a_fault_has_the_sentence_of_the_opened_file(void **state) {
    static const char *const faults[] = {
        "other_abi",  "other_minor",      "no_plugins",    "no_ops",     "no_score",
        "no_save",    "bad_id",           "bad_kind",      "newer_host", "long_set",
        "huge_size",  "short_descriptor", "default_range", "twice_key",  "outside_config",
        "no_choices", "ops_flag",         "desc_flag",     "host_key",   "option_flag",
        "deep_table", "empty_table"};
    struct rlhf__dirs dirs;
    struct rlhf__plugins *plugins = loader(&dirs, "/");
    struct rlhf__metadata *m = *state;
    for (size_t i = 0; i < CHECK_COUNT(faults); i++) {
        struct rlhf__error read = {0}, opened = {0};
        const struct rlhf__plugin **list;
        char path[1024], file[64], real[RLHF__PATH_CAP];
        size_t n;
        snprintf(file, sizeof file, "%s.so", faults[i]);
        assert_non_null(rlhf__path_real(module_path(file, path), real));
        assert_int_equal(rlhf__metadata_read(real, m, &read), RLHF_E_UNSUPPORTED);
        assert_int_equal(rlhf__plugin_open_file(plugins, real, &list, &n, &opened),
                         RLHF_E_UNSUPPORTED);
        assert_string_equal(read.text, opened.text);
        rlhf__metadata_finish(m);
    }
    rlhf__plugins_destroy(plugins);
}

static void nothing_of_it_is_run(void **state) {
    struct rlhf__metadata *m = *state;
    struct rlhf__error err = {0};
    char path[1024];
    check_ok(rlhf__metadata_read(module_path("crash.so", path), m, &err), &err);
    assert_int_equal(m->found, RLHF__METADATA_READ);
    assert_string_equal(m->plugin[0].desc.id, "org.example.faulty");
}

static void a_backend_has_one_too(void **state) {
    struct rlhf__metadata *m = *state;
    struct rlhf__error err = {0};
    char path[1024];
    kernels_path("kernels_reference.so", path);
    check_ok(rlhf__metadata_read(path, m, &err), &err);
    assert_int_equal(m->found, RLHF__METADATA_READ);
    assert_int_equal(m->n, 0);
    assert_true(m->backend && m->kernels.size && m->kernels.create);
    assert_string_equal(m->kernels.name, "reference");
}

static void files_without_one(void **state) {
    struct rlhf__metadata *m = *state;
    struct rlhf__error err = {0};
    char path[1024];
    check_ok(rlhf__metadata_read(module_path("no_note.so", path), m, &err), &err);
    assert_int_equal(m->found, RLHF__METADATA_NO_NOTE);
    rlhf__metadata_finish(m);
    check_ok(rlhf__metadata_read(module_path("not_plugin.so", path), m, &err), &err);
    assert_int_equal(m->found, RLHF__METADATA_OTHER);
    rlhf__metadata_finish(m);
    check_error(rlhf__metadata_of("x.so", "no ELF", 6, m, &err), RLHF_E_INVALID, &err,
                "x.so: is no shared object (ELF)");
}

// Every bit of every byte that the reader may read, and every length.
static void damaged_files_are_refused_or_read(void **state) {
    struct rlhf__metadata *m = *state;
    struct rlhf__error err = {0};
    struct rlhf__buf file = RLHF__BUF_INIT;
    char path[1024];
    uint32_t turn = 1;
    size_t refused = 0;
    check_ok(rlhf__file_read(module_path("sample.so", path), 1 << 24, &file, &err), &err);
    for (size_t n = 0; n < file.len; n += 1 + n / 16) {
        char *cut = malloc(n ? n : 1); // so that a read beyond the end is detected
        assert_non_null(cut);
        memcpy(cut, file.data, n);
        refused += rlhf__metadata_of("cut.so", cut, n, m, &err) < 0;
        rlhf__metadata_finish(m);
        free(cut);
    }
    assert_true(refused > 8);
    for (int i = 0; i < 6000; i++) {
        turn = turn * 1664525u + 1013904223u;
        const size_t at = (turn >> 8) % (i < 3000 ? 1024 : file.len);
        const char was = file.data[at];
        file.data[at] = (char)(was ^ (1 << (turn >> 29)));
        refused += rlhf__metadata_of("damaged.so", file.data, file.len, m, &err) < 0;
        rlhf__metadata_finish(m);
        file.data[at] = was;
    }
    assert_true(refused > 100);
    check_ok(rlhf__metadata_of("whole.so", file.data, file.len, m, &err), &err);
    rlhf__buf_free(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_says_what_the_opened_file_says, setup, teardown),
        cmocka_unit_test_setup_teardown(a_fault_has_the_sentence_of_the_opened_file, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(nothing_of_it_is_run, setup, teardown),
        cmocka_unit_test_setup_teardown(a_backend_has_one_too, setup, teardown),
        cmocka_unit_test_setup_teardown(files_without_one, setup, teardown),
        cmocka_unit_test_setup_teardown(damaged_files_are_refused_or_read, setup, teardown),
    };
    return cmocka_run_group_tests_name("metadata", tests, NULL, NULL);
}
