// report_data.c: see report_data.h.
#include "page/report_data.h"

#include "base/json.h"
#include "history/groups.h"
#include "history/judged_run.h"
#include "history/run_settings.h"
#include "page/curves_json.h"
#include "page/json_out.h"
#include "page/metric_words.h"
#include "page/run_words.h"
#include "page/verdict_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct one_run {
    struct rlhf__judged_run judged;
    struct rlhf__run_words words;
};

// ---- reading ----

static void one_run_close(struct one_run *r) {
    rlhf__judged_run_finish(&r->judged);
    json_decref(r->words.command);
    json_decref(r->words.facts);
}

static rlhf_status read_one(struct one_run *r, const struct rlhf__curve_range *range,
                            struct rlhf__error *err) {
    RLHF_TRY(rlhf__judged_run_read(&r->judged, range, err));
    RLHF_TRY(rlhf__run_words_read(&r->judged.files, &r->words, err));
    return rlhf__judged_run_judge(&r->judged, err);
}

static rlhf_status read_all(struct one_run *runs, const char *const *paths, size_t n,
                            struct rlhf__curve_range *range, struct rlhf__error *err) {
    for (size_t i = 0; i < n; i++) {
        RLHF_TRY(rlhf__run_files_open(paths[i], &runs[i].judged.files, err));
        rlhf__curve_range_add(range, &runs[i].judged.files);
    }
    rlhf__curve_range_divide(range);
    for (size_t i = 0; i < n; i++)
        RLHF_TRY(read_one(&runs[i], range, err));
    return RLHF_OK;
}

// ---- one run ----

static void put_settings(struct rlhf__buf *out, const json_t *config) {
    json_t *flat = rlhf__settings_flat(config), *value;
    const char *key, *comma = "";
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__json_put_key(out, "settings");
    rlhf__buf_putc(out, '{');
    json_object_foreach(flat, key, value) {
        rlhf__buf_clear(&text);
        rlhf__settings_put(&text, value);
        rlhf__buf_puts(out, comma);
        rlhf__json_write_string(out, key, strlen(key));
        rlhf__buf_puts(out, ": ");
        rlhf__json_write_string(out, rlhf__buf_text(&text), text.len);
        comma = ", ";
    }
    rlhf__buf_putc(out, '}');
    rlhf__buf_free(&text);
    json_decref(flat);
}

// ---- the whole ----

static rlhf_status put_run(struct rlhf__buf *out, const struct one_run *r,
                           struct rlhf__error *err) {
    const struct rlhf__curve *episodes = rlhf__curves_find(&r->judged.curves, "episode"),
                             *time = rlhf__curves_find(&r->judged.curves, "time/training");
    rlhf__buf_puts(out, "{\"name\": ");
    rlhf__json_write_string(out, r->judged.files.name, strlen(r->judged.files.name));
    rlhf__buf_puts(out, ", \"seed\": ");
    rlhf__json_put_number(out, rlhf__run_files_number(&r->judged.files, "run.seed", NAN), 16);
    rlhf__buf_printf(out, ", \"phases\": %lld",
                     (long long)(r->judged.curves.last < 0 ? 0 : r->judged.curves.last));
    rlhf__buf_puts(out, ", \"wanted\": ");
    rlhf__json_put_number(out, rlhf__run_files_number(&r->judged.files, "run.phases", NAN), 16);
    rlhf__buf_puts(out, ", \"episodes\": ");
    rlhf__json_put_number(out, episodes ? episodes->last : NAN, 16);
    rlhf__buf_puts(out, ", \"seconds\": ");
    rlhf__json_put_number(out, time ? time->sum : NAN, 5);
    rlhf__json_put(out, "command", r->words.command);
    rlhf__json_put(out, "facts", r->words.facts);
    put_settings(out, r->judged.files.config);
    rlhf__json_put_key(out, "tiles");
    rlhf__tiles_json(&r->judged.series, &r->judged.verdict.headline, out);
    rlhf__json_put_key(out, "verdict");
    rlhf__verdict_json(&r->judged.verdict, out);
    rlhf__json_put(out, "spread", r->judged.spread);
    rlhf__json_put(out, "samples", r->judged.texts);
    rlhf__json_put_key(out, "curves");
    RLHF_TRY(rlhf__curves_json(&r->judged.curves, out, err));
    rlhf__buf_putc(out, '}');
    return RLHF_OK;
}

// Definitions of all metrics of the runs.
static void put_words(struct rlhf__buf *out, const struct one_run *runs, size_t n) {
    json_t *words = json_object();
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < runs[i].judged.curves.n; k++) {
            const char *name = runs[i].judged.curves.all[k].name;
            json_t *found = json_object_get(words, name) ? NULL : rlhf__metric_words(name);
            if (found) json_object_set_new(words, name, found);
        }
    rlhf__json_put(out, "words", words);
    json_decref(words);
}

// What several runs say together.
static rlhf_status put_groups(struct rlhf__report_data *d, const struct one_run *runs, size_t n,
                              struct rlhf__error *err) {
    struct rlhf__grouped_run *g = calloc(n, sizeof *g);
    json_t *groups = NULL, *differ = NULL, *summary = NULL;
    if (!g) return RLHF__NOMEM(err, "out of memory");
    for (size_t i = 0; i < n; i++)
        g[i] = (struct rlhf__grouped_run){runs[i].judged.files.name, runs[i].judged.files.config,
                                          &runs[i].judged.series, &runs[i].judged.verdict};
    rlhf__groups_make(g, n, &groups, &differ);
    rlhf_status st = RLHF_OK;
    if (n > 1) st = rlhf__groups_compare(g, n, groups, &summary, err);
    const char *said = n > 1 ? json_string_value(json_array_get(summary, 0)) : g[0].verdict->title;
    d->said = strdup(said ? said : "");
    d->kind = n > 1 ? "none" : rlhf__verdict_kind_name(g[0].verdict->kind);
    rlhf__json_put(&d->json, "groups", groups);
    rlhf__json_put(&d->json, "differ", differ);
    rlhf__json_put(&d->json, "summary", summary);
    json_decref(groups);
    json_decref(differ);
    json_decref(summary);
    free(g);
    return st;
}

static rlhf_status put_all(struct rlhf__report_data *d, const struct one_run *runs, size_t n,
                           const struct rlhf__curve_range *range, struct rlhf__error *err) {
    char made[64] = "";
    struct tm day;
    const time_t now = time(NULL);
    if (gmtime_r(&now, &day)) strftime(made, sizeof made, "%Y-%m-%d %H:%M UTC", &day);
    rlhf__buf_puts(&d->json, "{\"version\": 1");
    rlhf__json_put_text(&d->json, "made", made);
    rlhf__buf_puts(&d->json, ", \"bucket\": ");
    rlhf__json_put_number(&d->json,
                          range->exact || !range->n_points
                              ? 1
                              : (double)(range->last - range->first + 1) / (double)range->n_points,
                          3);
    RLHF_TRY(put_groups(d, runs, n, err));
    put_words(&d->json, runs, n);
    rlhf__buf_puts(&d->json, ", \"runs\": [");
    for (size_t i = 0; i < n; i++) {
        rlhf__buf_puts(&d->json, i ? ",\n" : "");
        RLHF_TRY(put_run(&d->json, &runs[i], err));
    }
    rlhf__buf_puts(&d->json, "]}");
    return rlhf__buf_ok(&d->json, err);
}

rlhf_status rlhf__report_data_make(const char *const *paths, size_t n,
                                   struct rlhf__report_data *out, struct rlhf__error *err) {
    struct one_run *runs = calloc(n, sizeof *runs);
    struct rlhf__curve_range range = RLHF__CURVE_RANGE_INIT;
    *out = (struct rlhf__report_data){.kind = "none"};
    if (!runs) return RLHF__NOMEM(err, "out of memory");
    rlhf_status st = read_all(runs, paths, n, &range, err);
    if (st == RLHF_OK) st = put_all(out, runs, n, &range, err);
    if (st == RLHF_OK && n == 1) out->title = strdup(runs[0].judged.files.name);
    if (st == RLHF_OK && n > 1 && asprintf(&out->title, "%zu runs", n) < 0) out->title = NULL;
    if (st == RLHF_OK && (!out->title || !out->said)) st = RLHF__NOMEM(err, "out of memory");
    for (size_t i = 0; i < n; i++)
        one_run_close(&runs[i]);
    free(runs);
    return st;
}

void rlhf__report_data_finish(struct rlhf__report_data *d) {
    rlhf__buf_free(&d->json);
    free(d->title);
    free(d->said);
    *d = (struct rlhf__report_data){.kind = "none"};
}
