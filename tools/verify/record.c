// record.c: see record.h.
#include "verify/record.h"

#include "base/file.h"
#include "history/text_lines.h"
#include "verify/written.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rlhf/reward.h>

#define EDITED "the line was edited"

// ---- the chain ----

rlhf_status rlhf__record_chain(const struct rlhf__chain_file *c, struct rlhf__faults *f,
                               struct rlhf__error *err) {
    char where[240];
    for (size_t i = 0; i < c->n; i++) {
        const char *wrong = rlhf__chain_file_wrong(c, i);
        snprintf(where, sizeof where, "line %d: %s", c->line[i].number, wrong ? wrong : "");
        if (wrong) RLHF_TRY(rlhf__faults_say(f, c->line[i].phase, RLHF__CHAIN_FILE, where, err));
    }
    return RLHF_OK;
}

// ---- config.json ----

// Copy the members of `from` to `to`. If both have an object or a list under the same key, merges
// the two.
static void merge(json_t *to, const json_t *from) {
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)from, key, v) {
        json_t *own = json_object_get(to, key);
        if (json_is_object(own) && json_is_object(v))
            merge(own, v);
        else if (json_is_array(own) && json_is_array(v))
            for (size_t i = 0; i < json_array_size(v); i++)
                merge(json_array_get(own, i), json_array_get(v, i));
        else
            json_object_set(to, key, v);
    }
}

static const json_t *member(const struct rlhf__chain_file *c, enum rlhf__chain_kind kind,
                            const char *key) {
    const struct rlhf__chain_line *l = rlhf__chain_file_last(c, kind, INT64_MAX);
    return l ? json_object_get(l->value, key) : NULL;
}

rlhf_status rlhf__record_config(const char *run, const struct rlhf__chain_file *c,
                                struct rlhf__faults *f, struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    struct rlhf__error why = {0, ""};
    struct rlhf__buf text = RLHF__BUF_INIT, again = RLHF__BUF_INIT;
    json_t *is = NULL;
    json_t *said = json_deep_copy(json_object_get(member(c, RLHF__CHAIN_BEGIN, "begin"), "config"));
    const size_t before = f->n;
    const struct rlhf__fault at = {.file = "config.json"};
    if (said) merge(said, member(c, RLHF__CHAIN_SETTINGS, "settings"));
    rlhf__path_put(path, "%s/config.json", run);
    rlhf_status st = rlhf__file_read(path, (uint64_t)64 << 20, &text, err);
    if (st == RLHF_OK && rlhf__json_parse_foreign("config.json", rlhf__buf_text(&text), text.len,
                                                  &is, &why) != RLHF_OK)
        st = rlhf__faults_say(f, 0, "config.json", why.text, err);
    if (st == RLHF_OK && is) st = rlhf__faults_compare(f, &at, is, said, err);
    if (is) rlhf__json_write(&again, is, 2);
    rlhf__buf_putc(&again, '\n');
    if (st == RLHF_OK && f->n == before &&
        (again.len != text.len || memcmp(again.data, text.data, text.len) != 0))
        st = rlhf__faults_say(f, 0, "config.json", "its text was edited", err);
    json_decref(said);
    json_decref(is);
    rlhf__buf_finish(&text);
    rlhf__buf_finish(&again);
    return st;
}

// ---- files of lines ----

// A file of the run that is read line by line.
struct lines {
    const char *name;
    struct rlhf__text_lines file;
    int32_t floats; // 1: numbers in lists are f32
};

// Read the next line into *v. If the program would write the line differently, appends a fault and
// sets *v to NULL. Returns 0 at the end.
static int next(struct lines *l, int64_t phase, json_t **v, struct rlhf__faults *f, rlhf_status *st,
                struct rlhf__error *err) {
    const struct rlhf__buf *text = &l->file.line;
    char where[200];
    int more = 0;
    *v = NULL;
    if (*st == RLHF_OK) *st = rlhf__text_lines_next(&l->file, &more, err);
    if (*st != RLHF_OK || !more) return 0;
    *v = rlhf__json_decode(rlhf__buf_text(text), text->len, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(*v) && l->file.whole &&
        rlhf__written(rlhf__buf_text(text), text->len, *v, l->floats))
        return 1;
    const json_t *of = json_object_get(*v, "phase");
    snprintf(where, sizeof where, "line %lld: " EDITED, (long long)l->file.number);
    *st = rlhf__faults_say(f, json_is_integer(of) ? json_integer_value(of) : phase, l->name, where,
                           err);
    json_decref(*v);
    *v = NULL;
    return 1;
}

static rlhf_status open_lines(struct lines *l, const char *run, struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    rlhf__path_put(path, "%s/%s", run, l->name);
    return rlhf__text_lines_open(path, &l->file, err);
}

static int is_digest(const json_t *line, const char *key, struct rlhf__sha256 *s) {
    char hex[RLHF__HEX];
    rlhf__sha256_hex(s, hex);
    return strcmp(hex, rlhf__json_text_in(line, key)) == 0;
}

// ---- metrics.jsonl ----

static rlhf_status check_metrics(const struct rlhf__chain_line *link, const json_t *row,
                                 struct rlhf__faults *f, struct rlhf__error *err) {
    struct rlhf__sha256 steady, unsteady;
    const char *name;
    json_t *v;
    rlhf__sha256_init(&steady);
    rlhf__sha256_init(&unsteady);
    json_object_foreach((json_t *)(uintptr_t)row, name, v) {
        if (strcmp(name, "phase") == 0) continue;
        const double x = json_is_number(v) ? json_number_value(v) : (double)NAN;
        rlhf__chain_put_metric(rlhf__chain_is_steady(name) ? &steady : &unsteady, name, x);
    }
    if (!is_digest(link->value, "metrics", &steady))
        RLHF_TRY(rlhf__faults_say(f, link->phase, "metrics.jsonl",
                                  "its numbers are not those of the chain", err));
    if (!is_digest(link->value, "unsteady", &unsteady))
        RLHF_TRY(rlhf__faults_say(f, link->phase, "metrics.jsonl",
                                  "its times or rates are not those of the chain", err));
    return RLHF_OK;
}

// Report the missing phases between two rows.
static rlhf_status check_gap(const struct rlhf__chain_file *c, int64_t from, int64_t to,
                             const char *file, struct rlhf__faults *f, struct rlhf__error *err) {
    for (int64_t p = from; p < to; p++)
        if (rlhf__chain_file_at(c, RLHF__CHAIN_PHASE, p))
            RLHF_TRY(rlhf__faults_say(f, p, file, "the phase is missing", err));
    return RLHF_OK;
}

rlhf_status rlhf__record_metrics(const char *run, const struct rlhf__chain_file *c,
                                 struct rlhf__faults *f, struct rlhf__error *err) {
    struct lines l = {.name = "metrics.jsonl"};
    json_t *row;
    int64_t seen = c->n ? c->line[0].phase - 1 : -1;
    rlhf_status st = open_lines(&l, run, err);
    while (st == RLHF_OK && next(&l, seen + 1, &row, f, &st, err)) {
        const int64_t phase = row ? json_integer_value(json_object_get(row, "phase")) : seen + 1;
        const struct rlhf__chain_line *link = rlhf__chain_file_at(c, RLHF__CHAIN_PHASE, phase);
        if (st == RLHF_OK && row && phase > seen)
            st = check_gap(c, seen + 1, phase, l.name, f, err);
        if (st == RLHF_OK && row && link) st = check_metrics(link, row, f, err);
        if (st == RLHF_OK && row && !link && phase > c->line[0].phase)
            st = rlhf__faults_say(f, phase, l.name, "the chain lacks the phase", err);
        if (phase > seen) seen = phase;
        json_decref(row);
    }
    rlhf__text_lines_close(&l.file);
    const struct rlhf__chain_line *last = rlhf__chain_file_last(c, RLHF__CHAIN_PHASE, INT64_MAX);
    if (st == RLHF_OK && last)
        st = check_gap(c, seen + 1, last->phase + 1, "metrics.jsonl", f, err);
    return st;
}

// ---- rollouts.jsonl ----

static int32_t integer(const json_t *row, const char *key) {
    return (int32_t)json_integer_value(json_object_get(row, key));
}

static void put_floats(struct rlhf__buf *to, const json_t *list) {
    size_t i;
    json_t *v;
    rlhf__buf_clear(to);
    json_array_foreach(list, i, v) {
        const float x = json_is_number(v) ? (float)json_number_value(v) : NAN;
        rlhf__buf_put(to, &x, sizeof x);
    }
}

struct rows {
    struct rlhf__sha256 drawn, rewards;
    struct rlhf__buf ids, logp, paid;
    struct rlhf__buf segments, turns; // of episodes: lengths; what was paid for each turn
    int64_t phase;
    int64_t n;
    int64_t seen; // the last phase that has rows, or the phase at which the chain begins
};

static void put_segments(struct rlhf__buf *to, const json_t *list) {
    size_t i;
    json_t *v;
    rlhf__buf_clear(to);
    json_array_foreach(list, i, v) {
        const char *by = json_string_value(json_array_get(v, 0));
        const int32_t n = (int32_t)json_integer_value(json_array_get(v, 1));
        rlhf__buf_u32le(to, (uint32_t)(by && strcmp(by, "policy") == 0 ? n : -n));
    }
}

static int32_t verdict_of(const json_t *row) {
    const char *v = json_string_value(json_object_get(row, "verdict"));
    return !v                        ? RLHF_VERDICT_NONE
           : strcmp(v, "right") == 0 ? RLHF_VERDICT_RIGHT
                                     : RLHF_VERDICT_WRONG;
}

static const float *floats(const struct rlhf__buf *b) {
    return (const float *)(const void *)rlhf__buf_text(b);
}

static void put_reward(struct rows *r, const json_t *row) {
    const json_t *score = json_object_get(row, "score");
    rlhf__chain_put_reward(&r->rewards,
                           json_is_number(score) ? (float)json_number_value(score) : NAN,
                           floats(&r->paid), (int32_t)(r->paid.len / sizeof(float)));
    if (!json_object_get(row, "segments")) return;
    put_floats(&r->turns, json_object_get(row, "paid"));
    rlhf__chain_put_paid(&r->rewards, floats(&r->turns), (int32_t)(r->turns.len / sizeof(float)),
                         verdict_of(row));
}

static void put_row(struct rows *r, const json_t *row) {
    const json_t *ids = json_object_get(row, "ids");
    const char *end = json_string_value(json_object_get(row, "end"));
    size_t i;
    json_t *v;
    rlhf__buf_clear(&r->ids);
    json_array_foreach(ids, i, v) rlhf__buf_u32le(&r->ids, (uint32_t)json_integer_value(v));
    put_floats(&r->logp, json_object_get(row, "logp_sampled"));
    put_floats(&r->paid, json_object_get(row, "token_reward"));
    put_segments(&r->segments, json_object_get(row, "segments"));
    const struct rlhf__chain_row one = {
        .source = json_integer_value(json_object_get(row, "prompt")),
        .group = integer(row, "group"),
        .finished = json_is_true(json_object_get(row, "finished")),
        .prompt_length = integer(row, "prompt_length"),
        .n = (int32_t)(r->ids.len / sizeof(int32_t)),
        .ids = (const int32_t *)(const void *)rlhf__buf_text(&r->ids),
        .logp = floats(&r->logp),
        .n_logp = (int32_t)(r->logp.len / sizeof(float)),
        .n_segments = (int32_t)(r->segments.len / sizeof(int32_t)),
        .segment = (const int32_t *)(const void *)rlhf__buf_text(&r->segments),
        .end = end ? end : ""};
    rlhf__chain_put_row(&r->drawn, &one);
    put_reward(r, row);
    r->n++;
}

// Report each phase between r->seen and `to` for which the run wrote rows that are now missing.
static rlhf_status check_rows_gap(struct rows *r, const struct rlhf__chain_file *c, int64_t to,
                                  struct rlhf__faults *f, struct rlhf__error *err) {
    for (int64_t p = r->seen + 1; p < to; p++) {
        const struct rlhf__chain_line *link = rlhf__chain_file_at(c, RLHF__CHAIN_PHASE, p);
        const struct rlhf__chain_line *l = rlhf__chain_file_last(c, RLHF__CHAIN_SETTINGS, p - 1);
        const json_t *settings = l ? json_object_get(l->value, "settings") : NULL;
        if (link && *rlhf__json_text_in(link->value, "rows") &&
            json_is_true(json_object_get(json_object_get(settings, "log"), "rollouts")))
            RLHF_TRY(rlhf__faults_say(f, p, "rollouts.jsonl", "the phase is missing", err));
    }
    if (to > r->seen) r->seen = to;
    return RLHF_OK;
}

static rlhf_status end_rows(struct rows *r, const struct rlhf__chain_file *c,
                            struct rlhf__faults *f, struct rlhf__error *err) {
    const struct rlhf__chain_line *link = rlhf__chain_file_at(c, RLHF__CHAIN_PHASE, r->phase);
    if (r->n > 0) RLHF_TRY(check_rows_gap(r, c, r->phase, f, err));
    if (r->n > 0 && link && !is_digest(link->value, "rows", &r->drawn))
        RLHF_TRY(rlhf__faults_say(f, r->phase, "rollouts.jsonl",
                                  "its rows are not those of the chain", err));
    if (r->n > 0 && link && !is_digest(link->value, "rewards", &r->rewards))
        RLHF_TRY(rlhf__faults_say(f, r->phase, "rollouts.jsonl",
                                  "its rewards are not those of the chain", err));
    r->n = 0;
    rlhf__sha256_init(&r->drawn);
    rlhf__sha256_init(&r->rewards);
    return RLHF_OK;
}

rlhf_status rlhf__record_rollouts(const char *run, const struct rlhf__chain_file *c,
                                  struct rlhf__faults *f, struct rlhf__error *err) {
    struct lines l = {.name = "rollouts.jsonl", .floats = 1};
    struct rows r = {.phase = 1, .seen = c->n ? c->line[0].phase : 0};
    const struct rlhf__chain_line *last = rlhf__chain_file_last(c, RLHF__CHAIN_PHASE, INT64_MAX);
    json_t *row;
    rlhf_status st = open_lines(&l, run, err);
    const int is_there = l.file.fd >= 0;
    if (st == RLHF_OK) st = end_rows(&r, c, f, err);
    while (st == RLHF_OK && next(&l, r.phase, &row, f, &st, err)) {
        const int64_t phase = row ? json_integer_value(json_object_get(row, "phase")) : r.phase;
        if (st == RLHF_OK && phase != r.phase) st = end_rows(&r, c, f, err);
        r.phase = phase;
        if (json_object_get(row, "row")) put_row(&r, row);
        json_decref(row);
    }
    if (st == RLHF_OK) st = end_rows(&r, c, f, err);
    if (st == RLHF_OK && is_there && last) st = check_rows_gap(&r, c, last->phase + 1, f, err);
    rlhf__text_lines_close(&l.file);
    rlhf__buf_finish(&r.ids);
    rlhf__buf_finish(&r.logp);
    rlhf__buf_finish(&r.paid);
    rlhf__buf_finish(&r.segments);
    rlhf__buf_finish(&r.turns);
    return st;
}

// ---- checkpoints ----

static rlhf_status check_checkpoint(const char *run, const struct rlhf__chain_line *l,
                                    struct rlhf__faults *f, struct rlhf__error *err) {
    char path[RLHF__PATH_CAP], hex[RLHF__HEX];
    struct rlhf__fault one = {.phase = l->phase};
    const char *name;
    json_t *said;
    rlhf__path_put(path, "%s/checkpoints/%06lld", run, (long long)l->phase);
    if (!rlhf__is_dir(path)) return RLHF_OK; // checkpoint.keep has removed it
    json_object_foreach(json_object_get(l->value, "checkpoint"), name, said) {
        snprintf(one.file, sizeof one.file, "checkpoints/%06lld/%.100s", (long long)l->phase, name);
        rlhf__path_put(path, "%s/%s", run, one.file);
        if (!rlhf__is_file(path)) {
            RLHF_TRY(rlhf__faults_say(f, l->phase, one.file, "the file is missing", err));
            continue;
        }
        RLHF_TRY(rlhf__sha256_file(path, hex, err));
        if (json_is_string(said) && strcmp(hex, json_string_value(said)) == 0) continue;
        snprintf(one.where, sizeof one.where, "sha256");
        snprintf(one.was, sizeof one.was, "%s", hex);
        snprintf(one.expected, sizeof one.expected, "%.64s",
                 json_is_string(said) ? json_string_value(said) : "");
        RLHF_TRY(rlhf__faults_add(f, &one, err));
    }
    return RLHF_OK;
}

rlhf_status rlhf__record_checkpoints(const char *run, const struct rlhf__chain_file *c,
                                     struct rlhf__faults *f, struct rlhf__error *err) {
    for (size_t i = 0; i < c->n; i++)
        if (c->line[i].kind == RLHF__CHAIN_CHECKPOINT)
            RLHF_TRY(check_checkpoint(run, &c->line[i], f, err));
    return RLHF_OK;
}
