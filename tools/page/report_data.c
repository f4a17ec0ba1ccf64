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

// Several runs. judged[i] and words[i] belong to the same run.
struct runs {
    struct rlhf__judged_run *judged;
    struct rlhf__run_words *words;
    size_t n;
};

// ---- reading ----

static void runs_close(struct runs *r) {
    for (size_t i = 0; r->judged && r->words && i < r->n; i++) {
        rlhf__judged_run_finish(&r->judged[i]);
        json_decref(r->words[i].command);
        json_decref(r->words[i].facts);
    }
    free(r->judged);
    free(r->words);
}

static rlhf_status read_all(struct runs *r, const char *const *paths,
                            struct rlhf__curve_range *range, struct rlhf__error *err) {
    RLHF_TRY(rlhf__judged_runs_open(paths, r->n, r->judged, range, err));
    for (size_t i = 0; i < r->n; i++) {
        RLHF_TRY(rlhf__judged_run_read(&r->judged[i], range, err));
        RLHF_TRY(rlhf__run_words_read(&r->judged[i].files, &r->words[i], err));
        RLHF_TRY(rlhf__judged_run_judge(&r->judged[i], err));
    }
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
    rlhf__buf_finish(&text);
    json_decref(flat);
}

// ---- the whole ----

static rlhf_status put_run(struct rlhf__buf *out, const struct rlhf__judged_run *r,
                           const struct rlhf__run_words *words, struct rlhf__error *err) {
    const struct rlhf__curve *episodes = rlhf__curves_find(&r->curves, "episode"),
                             *time = rlhf__curves_find(&r->curves, "time/training");
    rlhf__buf_puts(out, "{\"name\": ");
    rlhf__json_write_string(out, r->files.name, strlen(r->files.name));
    rlhf__buf_puts(out, ", \"seed\": ");
    rlhf__json_put_number(out, rlhf__run_files_number(&r->files, "run.seed", NAN), 16);
    rlhf__buf_printf(out, ", \"phases\": %lld",
                     (long long)(r->curves.last < 0 ? 0 : r->curves.last));
    rlhf__buf_puts(out, ", \"wanted\": ");
    rlhf__json_put_number(out, rlhf__run_files_number(&r->files, "run.phases", NAN), 16);
    rlhf__buf_puts(out, ", \"episodes\": ");
    rlhf__json_put_number(out, episodes ? episodes->last : NAN, 16);
    rlhf__buf_puts(out, ", \"seconds\": ");
    rlhf__json_put_number(out, time ? time->sum : NAN, 5);
    rlhf__json_put(out, "command", words->command);
    rlhf__json_put(out, "facts", words->facts);
    put_settings(out, r->files.config);
    rlhf__json_put_key(out, "tiles");
    rlhf__tiles_json(&r->series, &r->verdict.headline, out);
    rlhf__json_put_key(out, "verdict");
    rlhf__verdict_json(&r->verdict, out);
    rlhf__json_put(out, "spread", r->spread);
    rlhf__json_put(out, "samples", r->texts);
    rlhf__json_put_key(out, "curves");
    RLHF_TRY(rlhf__curves_json(&r->curves, out, err));
    rlhf__buf_putc(out, '}');
    return RLHF_OK;
}

// Definitions of all metrics of the runs.
static void put_words(struct rlhf__buf *out, const struct rlhf__judged_run *runs, size_t n) {
    json_t *words = json_object();
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < runs[i].curves.n; k++) {
            const char *name = runs[i].curves.all[k].name;
            json_t *found = json_object_get(words, name) ? NULL : rlhf__metric_words(name);
            if (found) json_object_set_new(words, name, found);
        }
    rlhf__json_put(out, "words", words);
    json_decref(words);
}

// Appends the groups of several runs, and the sentences that compare them.
static rlhf_status put_groups(struct rlhf__report_data *d, const struct rlhf__judged_run *runs,
                              size_t n, struct rlhf__error *err) {
    json_t *groups = NULL, *differ = NULL, *summary = NULL;
    rlhf__groups_make(runs, n, &groups, &differ);
    rlhf_status st = RLHF_OK;
    if (n > 1) st = rlhf__groups_compare(runs, n, groups, &summary, err);
    const char *said =
        n > 1 ? json_string_value(json_array_get(summary, 0)) : runs[0].verdict.title;
    d->said = strdup(said ? said : "");
    d->kind = n > 1 ? "none" : rlhf__verdict_kind_name(runs[0].verdict.kind);
    rlhf__json_put(&d->json, "groups", groups);
    rlhf__json_put(&d->json, "differ", differ);
    rlhf__json_put(&d->json, "summary", summary);
    json_decref(groups);
    json_decref(differ);
    json_decref(summary);
    return st;
}

static rlhf_status put_all(struct rlhf__report_data *d, const struct runs *r,
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
    RLHF_TRY(put_groups(d, r->judged, r->n, err));
    put_words(&d->json, r->judged, r->n);
    rlhf__buf_puts(&d->json, ", \"runs\": [");
    for (size_t i = 0; i < r->n; i++) {
        rlhf__buf_puts(&d->json, i ? ",\n" : "");
        RLHF_TRY(put_run(&d->json, &r->judged[i], &r->words[i], err));
    }
    rlhf__buf_puts(&d->json, "]}");
    return rlhf__buf_ok(&d->json, err);
}

rlhf_status rlhf__report_data_make(const char *const *paths, size_t n,
                                   struct rlhf__report_data *out, struct rlhf__error *err) {
    struct runs r = {calloc(n, sizeof *r.judged), calloc(n, sizeof *r.words), n};
    struct rlhf__curve_range range = RLHF__CURVE_RANGE_INIT;
    rlhf_status st = RLHF_OK;
    *out = (struct rlhf__report_data){.kind = "none"};
    if (!r.judged || !r.words) st = RLHF__NOMEM(err, "out of memory");
    if (st == RLHF_OK) st = read_all(&r, paths, &range, err);
    if (st == RLHF_OK) st = put_all(out, &r, &range, err);
    if (st == RLHF_OK && n == 1) out->title = strdup(r.judged[0].files.name);
    if (st == RLHF_OK && n > 1 && asprintf(&out->title, "%zu runs", n) < 0) out->title = NULL;
    if (st == RLHF_OK && (!out->title || !out->said)) st = RLHF__NOMEM(err, "out of memory");
    runs_close(&r);
    return st;
}

void rlhf__report_data_finish(struct rlhf__report_data *d) {
    rlhf__buf_finish(&d->json);
    free(d->title);
    free(d->said);
    *d = (struct rlhf__report_data){.kind = "none"};
}
