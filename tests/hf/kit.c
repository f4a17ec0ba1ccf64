// kit.c: see kit.h.
#include "kit.h"

#include "base/json.h"
#include "model/classifier.h"

#include <dirent.h>
#include <math.h>
#include <unistd.h>

int hf_setup(void **state) {
    struct hf *f = calloc(1, sizeof *f);
    const char *build = getenv("RLHF_BUILD_DIR"), *source = getenv("RLHF_SOURCE_DIR");
    char expected[RLHF__PATH_CAP];
    void *scratch = NULL;
    *state = f;
    if (f && scratch_setup(&scratch) == 0) f->scratch = scratch;
    if (!f || !f->scratch || !build || !source) return -1;
    snprintf(expected, sizeof expected, "%s/tests/hf/expected.json", source);
    if (rlhf__json_load(expected, &f->expected, NULL) != RLHF_OK) return -1;
    snprintf(f->dirs.lib, sizeof f->dirs.lib, "%s/lib/rlhf/1", build);
    snprintf(f->dirs.share, sizeof f->dirs.share, "%s/share/rlhf", build);
    if (rlhf__plugins_open(&f->dirs, &f->plugins, NULL) != RLHF_OK) return -1;
    struct rlhf__compute_config compute = {.backend = "reference", .dtype = RLHF__DTYPE_F32};
    struct rlhf__run_config run = {.seed = 1, .threads = 1};
    return rlhf__session_init(&f->session, &f->dirs, NULL, NULL, f->plugins, &compute, &run, NULL);
}

int hf_teardown(void **state) {
    struct hf *f = *state;
    rlhf__session_finish(&f->session);
    rlhf__plugins_close(f->plugins);
    json_decref(f->expected);
    void *scratch = f->scratch;
    scratch_teardown(&scratch);
    free(f);
    return 0;
}

static void link_files(const char *from, const char *to) {
    DIR *d = opendir(from);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        char source[512], real[RLHF__PATH_CAP], target[1024];
        if (e->d_name[0] == '.') continue;
        snprintf(source, sizeof source, "%s/%s", from, e->d_name);
        snprintf(target, sizeof target, "%s/%s", to, e->d_name);
        assert_non_null(realpath(source, real));
        assert_int_equal(symlink(real, target), 0);
    }
    closedir(d);
}

const char *hf_variant(const struct hf *f, const char *name, const char *patch) {
    const char *dir = scratch_path(f->scratch, "dir");
    char from[256], file[512];
    struct rlhf__error err = {0};
    json_t *config = NULL, *more = patch ? json_loads(patch, 0, NULL) : json_object();
    check_ok(rlhf__folder_remove(NULL, dir, &err), &err);
    check_ok(rlhf__make_dirs(dir, &err), &err);
    snprintf(from, sizeof from, "dirs/%s", name);
    link_files(from, dir);
    snprintf(file, sizeof file, "%s/config.json", dir);
    check_ok(rlhf__json_load(file, &config, &err), &err);
    assert_int_equal(json_object_update(config, more), 0);
    json_decref(more);
    check_ok(rlhf__json_save_new(NULL, file, config, 2, &err), &err); // in place of the link
    return dir;
}

static rlhf_str text_of(const json_t *row) {
    const json_t *v = json_object_get(row, "text");
    return (rlhf_str){json_string_value(v), json_string_length(v)};
}

static void same_numbers(const char *name, const json_t *want, const float *got, size_t n) {
    assert_int_equal(json_array_size(want), n);
    for (size_t i = 0; i < n; i++) {
        double w = json_real_value(json_array_get(want, i));
        if (!(fabs(w - (double)got[i]) <= 1e-5 * (1 + fabs(w))))
            fail_msg("%s: number %zu is %.9g, expected %.9g", name, i, (double)got[i], w);
    }
}

// The ids of a text equal those of transformers, including special tokens.
static void same_ids(const char *name, const struct rlhf__tokenizer *tok, const json_t *row,
                     struct rlhf__ids *ids) {
    struct rlhf__error err = {0};
    const json_t *want = json_object_get(row, "ids");
    ids->n = 0;
    check_ok(rlhf__tokenizer_encode(tok, text_of(row), RLHF__ENCODE_TEMPLATE, 0, ids, &err), &err);
    if (ids->n != json_array_size(want))
        fail_msg("%s: \"%.40s\" has %zu ids, expected %zu", name, text_of(row).ptr, ids->n,
                 json_array_size(want));
    for (size_t i = 0; i < ids->n; i++)
        assert_int_equal(ids->data[i], json_integer_value(json_array_get(want, i)));
}

void hf_check_lm(const struct hf *f, const char *dir, const char *name) {
    struct rlhf__error err = {0};
    struct rlhf__model *m = NULL;
    struct rlhf__model_spec spec = {.dir = dir, .role = "policy"};
    check_ok(rlhf__model_open(&f->session.models, &spec, &m, &err), &err);
    struct rlhf__ids ids = {0};
    const json_t *row;
    size_t i;
    json_array_foreach(json_object_get(f->expected, name), i, row) {
        float logp[64];
        same_ids(name, m->tok, row, &ids);
        const int32_t offset[] = {0, (int32_t)ids.n}, prompt_len[] = {1};
        const rlhf_batch b = {.size = sizeof b,
                              .n = 1,
                              .total = (uint32_t)ids.n,
                              .ids = ids.data,
                              .offset = offset,
                              .prompt_len = prompt_len};
        const rlhf_forward how = {.size = sizeof how, .heads = RLHF_HEAD_LOGP};
        const rlhf_heads heads = {.size = sizeof heads, .logp = logp};
        check_ok(rlhf__model_forward(m, &b, &how, &heads, &err), &err);
        same_numbers(name, json_object_get(row, "logp"), logp + 1, ids.n - 1);
    }
    assert_true(i > 3);
    rlhf__ids_finish(&ids);
    rlhf__model_close(m);
}

void hf_check_classifier(const struct hf *f, const char *dir, const char *name, int32_t n_labels,
                         const char *first) {
    struct rlhf__error err = {0};
    struct rlhf__classifier *c = NULL;
    check_ok(rlhf__classifier_open(&f->session.models, dir, NULL, &c, &err), &err);
    assert_int_equal(rlhf__classifier_labels(c)->n, n_labels);
    assert_string_equal(rlhf__classifier_labels(c)->name[0], first);
    const json_t *row;
    size_t i;
    json_array_foreach(json_object_get(f->expected, name), i, row) {
        float logits[8];
        rlhf_str text = text_of(row);
        check_ok(rlhf__classifier_logits(c, 1, &text, NULL, logits, &err), &err);
        same_numbers(name, json_object_get(row, "logits"), logits, (size_t)n_labels);
    }
    assert_true(i > 3);
    rlhf__classifier_close(c);
}
