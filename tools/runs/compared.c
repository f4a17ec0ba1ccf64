// compared.c: see compared.h.
#include "runs/compared.h"

#include "history/groups.h"
#include "runs/name_range.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void rlhf__compared_finish(struct rlhf__compared *c) {
    for (size_t i = 0; i < c->n; i++)
        rlhf__judged_run_finish(&c->runs[i]);
    free(c->runs);
    json_decref(c->groups);
    json_decref(c->differ);
    json_decref(c->summary);
    *c = (struct rlhf__compared){0};
}

// ---- reading ----

static int same_directory(const struct rlhf__folder *a, const struct rlhf__folder *b) {
    struct stat x, y;
    return fstat(a->fd, &x) == 0 && fstat(b->fd, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

static rlhf_status open_all(const char *const *paths, struct rlhf__compared *c,
                            struct rlhf__curve_range *range, struct rlhf__error *err) {
    for (size_t i = 0; i < c->n; i++) {
        RLHF_TRY(rlhf__run_files_open(paths[i], &c->runs[i].files, err));
        for (size_t k = 0; k < i; k++)
            if (same_directory(c->runs[k].files.root, c->runs[i].files.root))
                return rlhf__fail(err, RLHF_E_INVALID, "the run '%s' is given twice", paths[i]);
        rlhf__curve_range_add(range, &c->runs[i].files);
    }
    rlhf__curve_range_divide(range);
    return RLHF_OK;
}

static struct rlhf__grouped_run *grouped(const struct rlhf__compared *c) {
    struct rlhf__grouped_run *g = calloc(c->n, sizeof *g);
    for (size_t i = 0; g && i < c->n; i++) {
        const struct rlhf__judged_run *r = &c->runs[i];
        g[i] = (struct rlhf__grouped_run){r->files.name, r->files.config, &r->series, &r->verdict};
    }
    return g;
}

static const char *common_headline(const struct rlhf__compared *c) {
    const char *metric = c->runs[0].verdict.headline.metric;
    for (size_t i = 1; i < c->n; i++) {
        const char *one = c->runs[i].verdict.headline.metric;
        if (!one || !metric || strcmp(one, metric) != 0) return NULL;
    }
    return metric;
}

rlhf_status rlhf__compared_read(const char *const *paths, size_t n, struct rlhf__compared *out,
                                struct rlhf__error *err) {
    struct rlhf__curve_range range = RLHF__CURVE_RANGE_INIT;
    *out = (struct rlhf__compared){.runs = calloc(n, sizeof *out->runs), .n = n};
    if (!out->runs) {
        out->n = 0;
        return RLHF__NOMEM(err, "out of memory");
    }
    RLHF_TRY(open_all(paths, out, &range, err));
    for (size_t i = 0; i < n; i++) {
        RLHF_TRY(rlhf__judged_run_read(&out->runs[i], &range, err));
        RLHF_TRY(rlhf__judged_run_judge(&out->runs[i], err));
    }
    struct rlhf__grouped_run *g = grouped(out);
    if (!g) return RLHF__NOMEM(err, "out of memory");
    rlhf__groups_make(g, n, &out->groups, &out->differ);
    free(g);
    out->headline = common_headline(out);
    return RLHF_OK;
}

rlhf_status rlhf__compared_judge(struct rlhf__compared *c, const char *(*label)(size_t group),
                                 struct rlhf__error *err) {
    struct rlhf__grouped_run *g = grouped(c);
    if (!g) return RLHF__NOMEM(err, "out of memory");
    for (size_t i = 0; i < json_array_size(c->groups); i++)
        json_object_set_new(json_array_get(c->groups, i), "label", json_string(label(i)));
    const rlhf_status st = rlhf__groups_compare(g, c->n, c->groups, &c->summary, err);
    free(g);
    return st;
}

// ---- groups ----

static size_t member(const struct rlhf__compared *c, size_t group, size_t i) {
    const json_t *runs = json_object_get(json_array_get(c->groups, group), "runs");
    return (size_t)json_integer_value(json_array_get(runs, i));
}

const struct rlhf__judged_run **rlhf__compared_group(const struct rlhf__compared *c, size_t group,
                                                     size_t *n) {
    *n = json_array_size(json_object_get(json_array_get(c->groups, group), "runs"));
    const struct rlhf__judged_run **runs = calloc(*n + 1, sizeof *runs);
    for (size_t i = 0; runs && i < *n; i++)
        runs[i] = &c->runs[member(c, group, i)];
    return runs;
}

void rlhf__compared_put_names(const struct rlhf__compared *c, size_t group, struct rlhf__buf *out) {
    size_t n;
    const struct rlhf__judged_run **runs = rlhf__compared_group(c, group, &n);
    const char **names = calloc(n + 1, sizeof *names);
    for (size_t i = 0; runs && names && i < n; i++)
        names[i] = runs[i]->files.name;
    if (runs && names) rlhf__put_name_range(out, names, n);
    free(names);
    free(runs);
}
