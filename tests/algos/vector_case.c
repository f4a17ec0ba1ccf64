// vector_case.c: see vector_case.h.
#include "algos/vector_case.h"

#include "support/numbers.h"

static struct batch b;

// ---- files ----

// What a file's cases point into: the lines, which have the texts, and arrays.
struct vector_memory {
    json_t *lines;
    void **array;
    size_t n;
};

static void *keep(struct vector_file *f, size_t n, size_t size) {
    struct vector_memory *m = f->memory;
    m->array = realloc(m->array, (m->n + 1) * sizeof *m->array);
    assert_non_null(m->array);
    m->array[m->n] = calloc(n, size);
    assert_non_null(m->array[m->n]);
    return m->array[m->n++];
}

static const double *doubles(struct vector_file *f, const json_t *from) {
    double *out = keep(f, V_TOTAL, sizeof *out);
    assert_true(!from || json_array_size(from) == V_TOTAL);
    for (size_t i = 0; i < json_array_size(from); i++)
        out[i] = json_number_value(json_array_get(from, i));
    return out;
}

static const int32_t *ints(struct vector_file *f, const json_t *from) {
    int32_t *out = keep(f, json_array_size(from), sizeof *out);
    for (size_t i = 0; i < json_array_size(from); i++)
        out[i] = (int32_t)json_integer_value(json_array_get(from, i));
    return out;
}

static const struct vector_metric *metrics_of(struct vector_file *f, const json_t *from) {
    struct vector_metric *out = keep(f, json_object_size(from) + 1, sizeof *out), *at = out;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)from, name, value) *at++ =
        (struct vector_metric){name, json_number_value(value)};
    assert_true(at > out);
    return out;
}

static void read_case(struct vector_file *f, const json_t *line) {
    struct vector_case *c = &f->cases[f->n++];
    c->name = json_string_value(json_object_get(line, "name"));
    c->options = json_string_value(json_object_get(line, "options"));
    c->so = json_string_value(json_object_get(line, "so"));
    assert_true(c->name && c->options);
    c->advantage = doubles(f, json_object_get(line, "advantage"));
    c->returns = doubles(f, json_object_get(line, "returns"));
    c->d_logp = doubles(f, json_object_get(line, "d_logp"));
    c->d_entropy = doubles(f, json_object_get(line, "d_entropy"));
    c->d_kl = doubles(f, json_object_get(line, "d_kl"));
    c->d_value = doubles(f, json_object_get(line, "d_value"));
    c->metrics = metrics_of(f, json_object_get(line, "metrics"));
}

void vector_open(struct vector_file *f, const char *name) {
    char path[4096];
    const char *root = getenv("RLHF_SOURCE_DIR");
    json_t *line;
    size_t i;
    json_error_t err;
    char *text = NULL;
    size_t cap = 0;
    memset(f, 0, sizeof *f);
    f->memory = calloc(1, sizeof *f->memory);
    assert_non_null(f->memory);
    f->memory->lines = json_array();
    snprintf(path, sizeof path, "%s/tests/algos/%s_vectors.jsonl", root ? root : ".", name);
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("%s cannot be read", path);
    while (getline(&text, &cap, file) > 0) {
        line = json_loads(text, 0, &err);
        if (!line) fail_msg("%s: %s", path, err.text);
        json_array_append_new(f->memory->lines, line);
    }
    free(text);
    fclose(file);
    f->cases = keep(f, json_array_size(f->memory->lines) + 1, sizeof *f->cases);
    json_array_foreach(f->memory->lines, i, line) {
        const json_t *given = json_object_get(line, "given");
        if (given) {
            f->given = ints(f, given);
            f->after = ints(f, json_object_get(line, "after"));
        } else {
            read_case(f, line);
        }
    }
    assert_true(f->n > 0);
}

void vector_close(struct vector_file *f) {
    for (size_t i = 0; i < f->memory->n; i++)
        free(f->memory->array[i]);
    free(f->memory->array);
    json_decref(f->memory->lines);
    free(f->memory);
    memset(f, 0, sizeof *f);
}

// ---- comparison ----

void vector_load(struct batch *to) {
    int32_t finished[V_N];
    json_t *from = numbers_open("algos/batch_vectors.json");
    memset(to, 0, sizeof *to);
    to->n = V_N;
    to->total = V_TOTAL;
    to->max_len = numbers_int(from, "max_len");
    numbers_ints(from, "offset", to->offset, V_N + 1);
    numbers_ints(from, "prompt_len", to->prompt_len, V_N);
    numbers_ints(from, "group", to->group, V_N);
    numbers_ints(from, "finished", finished, V_N);
    for (int i = 0; i < V_N; i++)
        to->finished[i] = (uint8_t)finished[i];
    numbers_floats(from, "score", to->score, V_N);
    numbers_floats(from, "token_reward", to->token_reward, V_TOTAL);
    numbers_floats(from, "old", to->old, V_TOTAL);
    numbers_floats(from, "ref", to->ref, V_TOTAL);
    numbers_floats(from, "logp", to->logp, V_TOTAL);
    numbers_floats(from, "entropy", to->entropy, V_TOTAL);
    numbers_floats(from, "kl", to->kl, V_TOTAL);
    numbers_floats(from, "value_old", to->value_old, V_TOTAL);
    numbers_floats(from, "value", to->value, V_TOTAL);
    json_decref(from);
}

// `tol` is both an absolute and a relative tolerance. Rounding to float changes a number by up to
// 6e-8 of its size, and the reference's derivatives are off by up to 1e-9.
static void assert_tokens(const struct vector_case *c, const char *what, const float *got,
                          const double *want, double tol) {
    char label[128];
    for (int32_t t = 0; t < b.total; t++) {
        snprintf(label, sizeof label, "%s %s[%d]", c->name, what, (int)t);
        assert_near((double)got[t], want[t], tol, label);
    }
}

void vector_check(const struct vector_case *c, const char *so, const int32_t *cuts) {
    struct algo a;
    vector_load(&b);
    algo_open(&a, so, c->options, V_N);
    assert_int_equal(batch_advantages(&a, &b), RLHF_OK);
    assert_tokens(c, "advantage", b.advantage, c->advantage, 1e-6);
    assert_tokens(c, "returns", b.returns, c->returns, 1e-6);
    double loss = 0;
    for (; cuts[0] < V_N; cuts++)
        loss += batch_loss(&a, &b, cuts[0], cuts[1], 0);
    assert_int_equal(algo_step_end(&a, 0, 0), 0);
    assert_int_equal(algo_phase_end(&a, 0), RLHF_OK);
    assert_tokens(c, "d_logp", b.d_logp, c->d_logp, 2e-7);
    assert_tokens(c, "d_entropy", b.d_entropy, c->d_entropy, 2e-7);
    assert_tokens(c, "d_kl", b.d_kl, c->d_kl, 2e-7);
    assert_tokens(c, "d_value", b.d_value, c->d_value, 2e-7);
    char label[128];
    uint32_t n = 0;
    for (const struct vector_metric *m = c->metrics; m->name; m++, n++) {
        snprintf(label, sizeof label, "%s %s", c->name, m->name);
        assert_near(metric(&a, m->name), m->value, 1e-6, label);
    }
    assert_int_equal(a.host->n_metrics, n); // the plugin reports only metrics of the reference
    double total;
    const int has_total = rlhf_test_metric(a.host, "loss/total", &total);
    assert_near(loss, has_total ? total : metric(&a, "objective/loss"), 1e-12, c->name);
    algo_close(&a);
}

void vector_check_all(const struct vector_file *f, const char *so, const int32_t *uneven) {
    int32_t whole[] = {0, V_N}, rows[V_N + 1];
    for (int32_t i = 0; i <= V_N; i++)
        rows[i] = i;
    for (size_t i = 0; i < f->n; i++) {
        vector_check(f->cases + i, so, whole);
        vector_check(f->cases + i, so, rows);
        vector_check(f->cases + i, so, uneven);
    }
}

static int listed(const char *key, const char *const *list) {
    for (; *list; list++)
        if (strcmp(key, *list) == 0) return 1;
    return 0;
}

void vector_choices(const struct vector_file *f, const char *so, const char *const *elsewhere) {
    struct algo a;
    assert_int_equal(algo_try(&a, so, f->n ? f->cases[0].options : ""), RLHF_OK);
    rlhf_opt row;
    const rlhf_opt *o = &row;
    for (uint32_t i = 0; rlhf_test_opt(a.plugin, i, &row); i++) {
        if (o->type != RLHF_T_ENUM || listed(o->key, elsewhere)) continue;
        for (int k = 0; o->choices[k]; k++) {
            char want[128];
            snprintf(want, sizeof want, "%s=%s", o->key, o->choices[k]);
            int found = k == o->i_def;
            for (size_t j = 0; j < f->n; j++)
                found |= strstr(f->cases[j].options, want) != NULL;
            if (!found) fail_msg("no case has %s", want);
        }
    }
    algo_close(&a);
}

void vector_documented(const struct vector_file *cases) {
    static char page[65536];
    char path[4096], quoted[160];
    const char *root = getenv("RLHF_SOURCE_DIR");
    snprintf(path, sizeof path, "%s/docs/metrics.md", root ? root : ".");
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    page[fread(page, 1, sizeof page - 1, f)] = 0;
    fclose(f);
    for (size_t i = 0; i < cases->n; i++)
        for (const struct vector_metric *m = cases->cases[i].metrics; m->name; m++) {
            snprintf(quoted, sizeof quoted, "`%s`", m->name);
            if (!strstr(page, quoted)) fail_msg("%s is not in docs/metrics.md", m->name);
        }
}
