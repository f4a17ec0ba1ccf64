// spec.c: see spec.h.
#include "grader/spec.h"

#include "process/utf8.h"

#include <math.h>
#include <rlhf/log.h>
#include <stdio.h>
#include <string.h>

static rlhf_status no_memory(const rlhf_host *h) {
    return (h->fail)(h, RLHF_E_NOMEM, "out of memory");
}

// ---- the file ----

static int is_key(const char *text) {
    const size_t n = strlen(text);
    return n > 0 && n <= RLHF__GRADER_KEY && (*text < '0' || *text > '9') &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == n &&
           !rlhf__formula_is_function(text);
}

static rlhf_status read_multi(struct rlhf__grader_spec *s, const struct rlhf__members *p) {
    const char *names[RLHF__FORMULA_NAMES], *key, *formula, *name;
    const json_t *graders = rlhf__members_get(p, "graders");
    const size_t n = json_object_size(graders);
    char what[320], shown[60];
    json_t *v;
    RLHF_TRY(rlhf__members_check(p, " type name graders calculate_output pass_threshold "));
    if (rlhf__members_get(p, "name")) RLHF_TRY(rlhf__members_text(p, "name", &name));
    RLHF_TRY(rlhf__members_number(p, "pass_threshold", &s->pass));
    if (n == 0 || n > RLHF__FORMULA_NAMES)
        return rlhf__members_expected(p, "graders",
                                      "an object of 1 to 32 graders, {NAME: GRADER, ...}");
    json_object_foreach((json_t *)(uintptr_t)graders, key, v) {
        struct rlhf__members at = {.host = p->host, .file = p->file, .v = v};
        if (!is_key(key)) {
            snprintf(what, sizeof what,
                     "has \"%s\"; a name in a formula has letters, digits and _, at most 40, does "
                     "not begin with a digit and is not the name of a function",
                     rlhf__utf8_shown(key, strlen(key), shown, sizeof shown));
            return rlhf__members_refuse(p, "/graders", what);
        }
        snprintf(at.path, sizeof at.path, "%.30s/graders/%s", p->path, key);
        if (!json_is_object(v)) return rlhf__members_refuse(p, at.path, "is not an object");
        names[s->n] = key;
        RLHF_TRY(rlhf__grader_read(&at, key, 1, &s->of[s->n++]));
    }
    RLHF_TRY(rlhf__members_text(p, "calculate_output", &formula));
    if (rlhf__formula_read(&s->formula, formula, names, s->n, what, sizeof what)) return RLHF_OK;
    snprintf(shown, sizeof shown, "%.30s/calculate_output has", p->path);
    return rlhf__members_refuse(p, shown, what);
}

// The grader of a file, which may be in a fine-tuning job.
static void find_grader(struct rlhf__members *p) {
    static const char *const path[] = {"method", "reinforcement", "grader"};
    const json_t *v = p->v;
    for (size_t i = 0; v && i < sizeof path / sizeof *path; i++)
        v = json_object_get(v, path[i]);
    if (!json_is_object(v)) return;
    p->v = v;
    snprintf(p->path, sizeof p->path, "/method/reinforcement/grader");
}

rlhf_status rlhf__grader_spec_take(struct rlhf__grader_spec *s, json_t *file) {
    struct rlhf__members p = {.host = s->host, .file = s->path, .v = s->file = file};
    s->pass = (double)NAN;
    s->of = s->host->alloc(s->host, RLHF__FORMULA_NAMES * sizeof *s->of);
    if (!s->of) return no_memory(s->host);
    if (!json_is_object(p.v)) return rlhf__members_refuse(&p, "", "is not an object");
    find_grader(&p);
    const char *type = json_string_value(rlhf__members_get(&p, "type"));
    s->multi = type && strcmp(type, "multi") == 0;
    if (s->multi) return read_multi(s, &p);
    RLHF_TRY(rlhf__grader_read(&p, "grade", 0, &s->of[s->n++]));
    s->pass = s->of[0].pass;
    return RLHF_OK;
}

rlhf_status rlhf__grader_spec_read(struct rlhf__grader_spec *s) {
    json_error_t why;
    char shown[120];
    json_t *file = json_load_file(s->path, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &why);
    if (!file && why.line < 0)
        return rlhf_failf(s->host, RLHF_E_INVALID, "file=%s cannot be read", s->path);
    if (!file)
        return rlhf_failf(s->host, RLHF_E_INVALID, "%s: line %d is not valid JSON: %s", s->path,
                          why.line,
                          rlhf__utf8_shown(why.text, strlen(why.text), shown, sizeof shown));
    return rlhf__grader_spec_take(s, file);
}

void rlhf__grader_spec_finish(struct rlhf__grader_spec *s) {
    for (uint32_t i = 0; i < s->n; i++)
        rlhf__grader_finish(&s->of[i], s->host);
    s->host->free(s->host, s->of);
    json_decref(s->file);
    *s = (struct rlhf__grader_spec){0};
}

// ---- data rows ----

rlhf_status rlhf__grader_spec_check_row(const struct rlhf__grader_spec *s, rlhf_str row) {
    struct rlhf__template_from from = {.rows = s->host->service(s->host, RLHF_SVC_ROW)};
    rlhf_row *item = NULL;
    char what[120];
    rlhf_status st = RLHF_OK;
    if (!from.rows) return RLHF_OK;
    if (row.len) RLHF_TRY(from.rows->open(s->host, row, &item));
    from.of[RLHF__TEMPLATE_ITEM] = item;
    for (uint32_t i = 0; st == RLHF_OK && i < s->n; i++)
        if (rlhf__grader_lacks(&s->of[i], &from, what, sizeof what))
            st = rlhf_failf(s->host, RLHF_E_INVALID,
                            "the data row has no value for %s, which %s reads at %s", what, s->path,
                            *s->of[i].path ? s->of[i].path : "its top");
    from.rows->close(s->host, item);
    return st;
}
