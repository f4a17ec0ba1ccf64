// grades.c: see grades.h.
#include "grader/grades.h"

#include "grader/sample.h"
#include "grader/similarity.h"

#include <rlhf/log.h>

#include <math.h>
#include <stdio.h>

// ---- graders that compare texts ----

// Leaves the grade NaN if a field of the sample is missing.
static rlhf_status compare(const rlhf_host *host, const struct rlhf__grader *g,
                           const struct rlhf__template_from *from, double *out) {
    struct rlhf__bytes text[2] = {{.host = host}, {.host = host}};
    rlhf_status st = RLHF_OK;
    *out = (double)NAN;
    const int filled = rlhf__template_fill(&g->text[0], from, &text[0], NULL, 0) &&
                       rlhf__template_fill(&g->text[1], from, &text[1], NULL, 0);
    if (text[0].full || text[1].full)
        st = (host->fail)(host, RLHF_E_NOMEM, "out of memory");
    else if (filled)
        st = rlhf__similarity(host, g, (rlhf_str){text[0].data, text[0].len},
                              (rlhf_str){text[1].data, text[1].len}, out);
    rlhf__bytes_finish(&text[0]);
    rlhf__bytes_finish(&text[1]);
    return st;
}

static int is_text_grader(const struct rlhf__grader *g) {
    return g->type == RLHF__GRADER_STRING_CHECK || g->type == RLHF__GRADER_TEXT_SIMILARITY;
}

static rlhf_status compare_row(struct rlhf__grades *a, uint32_t i) {
    struct rlhf__grader_sample s = {0};
    rlhf_status st = rlhf__grader_sample_init(&s, a->host, a->in, i);
    for (uint32_t k = 0; st == RLHF_OK && k < a->spec->n; k++)
        if (is_text_grader(&a->spec->of[k]))
            st = compare(a->host, &a->spec->of[k], &s.from, &a->of[(size_t)k * a->in->n + i]);
    rlhf__grader_sample_finish(&s);
    return st;
}

// ---- graders that ask ----

static rlhf_status call_python(struct rlhf__grades *a, struct rlhf__python *python, double *to) {
    struct rlhf__frame f = {.data = {.host = a->host}};
    rlhf_status st = rlhf__python_score(python, a->in, &f);
    if (st == RLHF_OK && f.n_doubles != a->in->n)
        st = rlhf_failf(a->host, RLHF_E_IO, "%s answered %zu grades for %u rows", python->name,
                        f.n_doubles, a->in->n);
    for (uint32_t i = 0; st == RLHF_OK && i < a->in->n; i++)
        to[i] = rlhf__frame_double(&f, i);
    if (st == RLHF_OK) st = rlhf__python_report(python, &f);
    rlhf__bytes_finish(&f.data);
    return st;
}

static rlhf_status ask(struct rlhf__grades *a, uint32_t k) {
    const struct rlhf__grader *g = &a->spec->of[k];
    double *to = a->of + (size_t)k * a->in->n;
    if (g->type == RLHF__GRADER_PYTHON) return call_python(a, &a->python[k], to);
    return rlhf__grader_judge_ask(a->judge, g, a->in, to, a->failed, a->why);
}

rlhf_status rlhf__grades_init(struct rlhf__grades *a) {
    rlhf_status st = RLHF_OK;
    a->of = a->host->alloc(a->host, (uint64_t)a->spec->n * a->in->n * sizeof *a->of);
    a->failed = a->host->alloc(a->host, a->in->n);
    if (!a->of || !a->failed) return (a->host->fail)(a->host, RLHF_E_NOMEM, "out of memory");
    for (uint32_t i = 0; st == RLHF_OK && i < a->in->n; i++)
        st = compare_row(a, i);
    for (uint32_t k = 0; st == RLHF_OK && k < a->spec->n; k++)
        if (!is_text_grader(&a->spec->of[k])) st = ask(a, k);
    return st;
}

void rlhf__grades_finish(struct rlhf__grades *a) {
    a->host->free(a->host, a->of);
    a->host->free(a->host, a->failed);
}

// ---- the grade of a row ----

double rlhf__grades_row(const struct rlhf__grades *a, uint32_t i, int *valid) {
    double value[RLHF__FORMULA_NAMES] = {0};
    *valid = 1;
    for (uint32_t k = 0; k < a->spec->n; k++) {
        value[k] = a->of[(size_t)k * a->in->n + i];
        if (isfinite(value[k])) continue;
        value[k] = 0;
        *valid = 0;
    }
    const double grade = a->spec->multi ? rlhf__formula_value(&a->spec->formula, value) : value[0];
    if (isfinite(grade)) return grade;
    *valid = 0;
    return 0;
}

// ---- metrics ----

// Reports the mean of a grader of a `multi`, as KEY/WHAT.
static void report_part(const struct rlhf__grades *a, const char *key, const char *what, double sum,
                        double count) {
    char name[RLHF__GRADER_KEY + 16];
    snprintf(name, sizeof name, "%s/%s", key, what);
    rlhf_metric_mean(a->host, name, sum / count, count);
}

void rlhf__grades_report(const struct rlhf__grades *a) {
    const struct rlhf__grader_spec *s = a->spec;
    double invalid = 0, passed = 0, rows = 0;
    int valid;
    for (uint32_t i = 0; i < a->in->n; i++) {
        if (a->failed[i]) continue;
        passed += rlhf__grades_row(a, i, &valid) >= s->pass;
        invalid += !valid;
        rows++;
    }
    if (rows == 0) return;
    rlhf_metric_mean(a->host, "invalid", invalid / rows, rows);
    if (!isnan(s->pass)) rlhf_metric_mean(a->host, "passed", passed / rows, rows);
    for (uint32_t k = 0; s->multi && k < s->n; k++) {
        double sum = 0, above = 0;
        for (uint32_t i = 0; i < a->in->n; i++) {
            const double grade = a->of[(size_t)k * a->in->n + i];
            if (a->failed[i]) continue;
            sum += isfinite(grade) ? grade : 0;
            above += isfinite(grade) && grade >= s->of[k].pass;
        }
        report_part(a, s->of[k].key, "mean", sum, rows);
        if (!isnan(s->of[k].pass)) report_part(a, s->of[k].key, "passed", above, rows);
    }
}
