// compared.c: see compared.h.
#include "runs/compared.h"

#include "history/groups.h"
#include "runs/name_range.h"

#include <stdlib.h>
#include <string.h>

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
    RLHF_TRY(rlhf__judged_runs_open(paths, n, out->runs, &range, err));
    for (size_t i = 0; i < n; i++) {
        RLHF_TRY(rlhf__judged_run_read(&out->runs[i], &range, err));
        RLHF_TRY(rlhf__judged_run_judge(&out->runs[i], err));
    }
    rlhf__groups_make(out->runs, n, &out->groups, &out->differ);
    out->headline = common_headline(out);
    return RLHF_OK;
}

rlhf_status rlhf__compared_judge(struct rlhf__compared *c, const char *(*label)(size_t group),
                                 struct rlhf__error *err) {
    for (size_t i = 0; i < json_array_size(c->groups); i++)
        json_object_set_new(json_array_get(c->groups, i), "label", json_string(label(i)));
    return rlhf__groups_compare(c->runs, c->n, c->groups, &c->summary, err);
}

// ---- groups ----

const struct rlhf__judged_run **rlhf__compared_group(const struct rlhf__compared *c, size_t group,
                                                     size_t *n) {
    return rlhf__group_members(c->runs, json_array_get(c->groups, group), n);
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
