// groups.c: see groups.h.
#include "history/groups.h"

#include "base/json.h"
#include "history/group_end.h"
#include "history/run_settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMED 2 // settings in the label of a group; more if labels would be equal

// ---- groups ----

// Returns 1 for settings that may differ between the runs of one group: the seed, names, log
// settings, and settings that cannot change results.
static int may_differ(const char *key) {
    static const char *const names[] = {"run.seed", "run.dir", "run.note", "run.threads",
                                        "run.stop_after"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(key, names[i]) == 0) return 1;
    return strncmp(key, "log.", 4) == 0;
}

static int same(const json_t *a, const json_t *b) { return a == b || (a && b && json_equal(a, b)); }

// The keys of the settings that differ between the runs, without those that may_differ accepts. New
// reference.
static json_t *differing(json_t *const *flat, size_t n) {
    json_t *seen = json_object(), *out = json_array();
    const char *key;
    json_t *v;
    for (size_t i = 0; i < n; i++)
        json_object_foreach(flat[i], key, v) {
            if (may_differ(key) || json_object_get(seen, key)) continue;
            json_object_set_new(seen, key, json_true());
            for (size_t k = 0; k < n; k++)
                if (!same(v, json_object_get(flat[k], key))) {
                    json_array_append_new(out, json_string(key));
                    break;
                }
        }
    json_decref(seen);
    return out;
}

static int same_settings(const json_t *a, const json_t *b, const json_t *keys) {
    for (size_t i = 0; i < json_array_size(keys); i++) {
        const char *key = json_string_value(json_array_get(keys, i));
        if (!same(json_object_get(a, key), json_object_get(b, key))) return 0;
    }
    return 1;
}

// Returns the label of a group of several runs: the settings in which the group differs from other
// groups, such as "kl_coef 0.2".
static json_t *label_of(const json_t *flat, const json_t *keys, size_t named) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    for (size_t i = 0; i < json_array_size(keys) && i < named; i++) {
        const char *key = json_string_value(json_array_get(keys, i)), *dot = strrchr(key, '.');
        rlhf__buf_printf(&text, "%s%s ", i ? ", " : "", dot ? dot + 1 : key);
        rlhf__settings_put(&text, json_object_get(flat, key));
    }
    json_t *label = rlhf__json_text(rlhf__buf_text(&text));
    rlhf__buf_finish(&text);
    return label;
}

static size_t first_of(const json_t *group) {
    return (size_t)json_integer_value(json_array_get(json_object_get(group, "runs"), 0));
}

static json_t *group_runs(json_t *const *flat, size_t n, const json_t *keys) {
    json_t *groups = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *mine = NULL;
        for (size_t g = 0; g < json_array_size(groups) && !mine; g++)
            if (same_settings(flat[first_of(json_array_get(groups, g))], flat[i], keys))
                mine = json_array_get(groups, g);
        if (!mine) {
            mine = json_pack("{s:[]}", "runs");
            json_array_append_new(groups, mine);
        }
        json_array_append_new(json_object_get(mine, "runs"), json_integer((json_int_t)i));
    }
    return groups;
}

static json_t *table_of(json_t *const *flat, const json_t *keys, const json_t *groups) {
    json_t *table = json_array();
    for (size_t i = 0; i < json_array_size(keys); i++) {
        const char *key = json_string_value(json_array_get(keys, i));
        json_t *values = json_array();
        for (size_t g = 0; g < json_array_size(groups); g++) {
            struct rlhf__buf text = RLHF__BUF_INIT;
            const json_t *of = flat[first_of(json_array_get(groups, g))];
            rlhf__settings_put(&text, json_object_get(of, key));
            json_array_append_new(values, rlhf__json_text(rlhf__buf_text(&text)));
            rlhf__buf_finish(&text);
        }
        json_array_append_new(table, json_pack("{s:s, s:o}", "key", key, "values", values));
    }
    return table;
}

// 1 if two of the groups have the same label.
static int labels_repeat(const json_t *groups) {
    for (size_t g = 0; g < json_array_size(groups); g++)
        for (size_t k = 0; k < g; k++)
            if (json_equal(json_object_get(json_array_get(groups, g), "label"),
                           json_object_get(json_array_get(groups, k), "label")))
                return 1;
    return 0;
}

// Set the labels. The label of a group with one run is the name of the run.
static void put_labels(const struct rlhf__judged_run *runs, json_t *const *flat, const json_t *keys,
                       size_t named, const json_t *groups) {
    for (size_t g = 0; g < json_array_size(groups); g++) {
        json_t *group = json_array_get(groups, g);
        const size_t first = first_of(group);
        const int several = json_array_size(json_object_get(group, "runs")) > 1;
        json_object_set_new(group, "label",
                            several && json_array_size(keys)
                                ? label_of(flat[first], keys, named)
                                : rlhf__json_text(runs[first].files.name));
    }
}

void rlhf__groups_make(const struct rlhf__judged_run *runs, size_t n, json_t **groups,
                       json_t **differ) {
    json_t **flat = calloc(n + 1, sizeof *flat);
    *groups = json_array();
    *differ = json_array();
    if (!flat) return;
    for (size_t i = 0; i < n; i++)
        flat[i] = rlhf__settings_flat(runs[i].files.config);
    json_t *keys = differing(flat, n);
    json_decref(*groups);
    json_decref(*differ);
    *groups = group_runs(flat, n, keys);
    *differ = table_of(flat, keys, *groups);
    size_t named = NAMED;
    do
        put_labels(runs, flat, keys, named, *groups);
    while (labels_repeat(*groups) && named++ < json_array_size(keys));
    json_decref(keys);
    for (size_t i = 0; i < n; i++)
        json_decref(flat[i]);
    free(flat);
}

const struct rlhf__judged_run **rlhf__group_members(const struct rlhf__judged_run *runs,
                                                    const json_t *group, size_t *n) {
    const json_t *members = json_object_get(group, "runs");
    *n = json_array_size(members);
    const struct rlhf__judged_run **out = calloc(*n + 1, sizeof *out);
    for (size_t i = 0; out && i < *n; i++)
        out[i] = &runs[(size_t)json_integer_value(json_array_get(members, i))];
    return out;
}

// ---- what the groups show together ----

// The end values of a group's runs, for the compared metric and for the KL.
struct group_ends {
    const char *label;
    struct rlhf__group_end end, kl;
};

static rlhf_status ends_of(const struct rlhf__judged_run *runs, const json_t *group,
                           const char *metric, struct group_ends *out, struct rlhf__error *err) {
    size_t n;
    const struct rlhf__judged_run **members = rlhf__group_members(runs, group, &n);
    if (!members) return RLHF__NOMEM(err, "out of memory comparing runs");
    *out = (struct group_ends){.label = json_string_value(json_object_get(group, "label")),
                               .end = rlhf__group_end_of(members, n, metric),
                               .kl = rlhf__group_end_of(members, n, "objective/kl")};
    free(members);
    return RLHF_OK;
}

// Append "0.946 (0.925 to 0.983, 3 seeds), KL 7.59".
static void put_span(struct rlhf__buf *out, const struct group_ends *g) {
    const struct rlhf__group_end *e = &g->end;
    char a[40], b[40];
    rlhf__buf_puts(out, rlhf__figure(e->mean, a));
    rlhf__buf_puts(out, " (");
    if (e->n > 1)
        rlhf__buf_printf(out, "%s to %s, ", rlhf__figure(e->low, a), rlhf__figure(e->high, b));
    if (e->n > e->seeds) rlhf__buf_printf(out, "%lld runs, ", (long long)e->n);
    if (e->seeds > 1)
        rlhf__buf_printf(out, "%lld seeds)", (long long)e->seeds);
    else
        rlhf__buf_puts(out, "one seed)");
    if (g->kl.n) rlhf__buf_printf(out, ", KL %s", rlhf__figure(g->kl.mean, a));
}

static void put_problems(struct rlhf__buf *out, const struct rlhf__judged_run *runs, size_t n) {
    int any = 0;
    for (size_t i = 0; i < n; i++) {
        const struct rlhf__verdict *v = &runs[i].verdict;
        const int bad =
            v->kind == RLHF__VERDICT_BAD || (v->notes.n && v->notes.all[0].level == RLHF__NOTE_BAD);
        if (!bad) continue;
        rlhf__buf_printf(out, "%s%s (%s)", any ? ", " : " Problems in ", runs[i].files.name,
                         v->title);
        any = 1;
    }
    if (any) rlhf__buf_putc(out, '.');
}

// Returns 1 if the values of objective/scores cannot be compared, because the runs differ in their
// rewards, in the weights or options of the rewards, or in settings that change the scale of
// rewards.
static int rewards_differ(const struct rlhf__judged_run *runs, size_t n) {
    static const char *const scale[] = {"normalize", "clip"};
    for (size_t i = 1; i < n; i++) {
        const json_t *a = runs[0].files.config, *b = runs[i].files.config;
        if (!same(json_object_get(a, "reward"), json_object_get(b, "reward"))) return 1;
        for (size_t k = 0; k < sizeof scale / sizeof *scale; k++)
            if (!same(json_object_get(json_object_get(a, "rewards"), scale[k]),
                      json_object_get(json_object_get(b, "rewards"), scale[k])))
                return 1;
    }
    return 0;
}

static void sort_ends(struct group_ends *e, size_t n, int better) {
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k > 0 && better * e[k].end.mean > better * e[k - 1].end.mean; k--) {
            const struct group_ends swap = e[k];
            e[k] = e[k - 1];
            e[k - 1] = swap;
        }
}

static int ranges_overlap(const struct rlhf__group_end *a, const struct rlhf__group_end *b) {
    return a->low <= b->high && b->low <= a->high;
}

// Returns the reason to doubt that *a, the best, is better than *b, the second best, or "" if none
// exists. If both have several seeds, there is doubt if their ranges overlap. Otherwise there is
// doubt if the difference is at most twice its standard error. If that error is unknown, there is
// no doubt.
static const char *doubt(const struct rlhf__group_end *a, const struct rlhf__group_end *b) {
    if (a->seeds > 1 && b->seeds > 1) return ranges_overlap(a, b) ? ", but the ranges overlap" : "";
    return fabs(a->mean - b->mean) <= 2 * sqrt(a->error * a->error + b->error * b->error)
               ? ", but not by more than the error"
               : "";
}

static void compare_groups(const struct rlhf__headline *by, const struct group_ends *e, size_t n,
                           int64_t n_runs, struct rlhf__buf *title, struct rlhf__buf *text) {
    if (n == 1) {
        rlhf__buf_printf(title, "%s ends at ", by->word);
        put_span(title, e);
        rlhf__buf_printf(text, "%lld runs of one setting.", (long long)n_runs);
        return;
    }
    const struct rlhf__group_end *a = &e[0].end, *b = &e[1].end;
    rlhf__buf_printf(title, "%s ends %s with %s%s", by->word, by->better > 0 ? "highest" : "lowest",
                     e[0].label, doubt(a, b));
    for (size_t i = 0; i < n; i++) {
        rlhf__buf_printf(text, "%s%s: ", i ? "; " : "", e[i].label);
        put_span(text, &e[i]);
    }
    if (a->seeds < 2 || b->seeds < 2)
        rlhf__buf_puts(text, ". One seed says little about a difference.");
    else if (ranges_overlap(a, b))
        rlhf__buf_puts(text, ". The ranges of the first two overlap: this does not show a "
                             "difference.");
    else
        rlhf__buf_puts(text, ". The ranges of the first two do not overlap.");
}

rlhf_status rlhf__groups_compare(const struct rlhf__judged_run *runs, size_t n,
                                 const json_t *groups, json_t **out, struct rlhf__error *err) {
    struct rlhf__buf title = RLHF__BUF_INIT, text = RLHF__BUF_INIT;
    const size_t n_groups = json_array_size(groups);
    const struct rlhf__headline by = runs[0].verdict.headline;
    struct group_ends *e = calloc(n_groups, sizeof *e);
    const char *refused = NULL;
    if (!e) return RLHF__NOMEM(err, "out of memory comparing runs");
    for (size_t i = 0; i < n; i++) {
        const char *metric = runs[i].verdict.headline.metric;
        if (!by.metric || !metric || strcmp(by.metric, metric) != 0)
            refused = "They are judged by different measures, whose values cannot be compared.";
    }
    if (!refused && strcmp(by.metric, "objective/scores") == 0 && rewards_differ(runs, n))
        refused = "Their rewards differ, so their values cannot be compared.";
    rlhf_status st = RLHF_OK;
    for (size_t g = 0; g < n_groups && !refused && st == RLHF_OK; g++)
        st = ends_of(runs, json_array_get(groups, g), by.metric, &e[g], err);
    if (st != RLHF_OK) {
        free(e);
        return st;
    }
    if (refused) {
        rlhf__buf_printf(&title, "%zu runs, %zu setting%s", n, n_groups, n_groups == 1 ? "" : "s");
        rlhf__buf_puts(&text, refused);
    } else {
        sort_ends(e, n_groups, by.better);
        compare_groups(&by, e, n_groups, (int64_t)n, &title, &text);
    }
    put_problems(&text, runs, n);
    *out = json_pack("[o, o]", rlhf__json_text(rlhf__buf_text(&title)),
                     rlhf__json_text(rlhf__buf_text(&text)));
    free(e);
    rlhf__buf_finish(&title);
    rlhf__buf_finish(&text);
    return *out ? RLHF_OK : RLHF__NOMEM(err, "out of memory comparing runs");
}
