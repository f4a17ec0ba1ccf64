// phase_reader.c: see phase_reader.h.
#include "report/phase_reader.h"

#include "history/run_lines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { METRICS, SAMPLES, SPREAD, EVENTS, N_FILES };

static const char *const names[N_FILES] = {"metrics.jsonl", "samples.jsonl", "spread.jsonl",
                                           "events.jsonl"};

// A file, and the first of its lines that has not been used.
struct source {
    struct rlhf__run_lines lines;
    int32_t open, has; // has: 1 if `lines` holds such a line
};

// An array that grows.
struct list {
    char *items;
    size_t n, cap;
};

// A spread with its numbers.
struct spread {
    rlhf_spread api; // first member
    double *value;   // the same as api.value
    int64_t *count;
};

struct rlhf__phase_reader {
    struct rlhf__run_files files; // only `root` and `trouble` are used
    struct source source[N_FILES];
    double elapsed;
    int32_t full; // 1: out of memory
    // the current phase
    rlhf_sink_phase phase;
    json_t *rows; // the decoded lines, which hold the strings
    struct list name, value, prompt, response, score, ref_logp, held_out, spread, warning_id,
        warning;
};

// ---- lists ----

static void add(struct rlhf__phase_reader *r, struct list *l, const void *item, size_t size) {
    if ((l->n + 1) * size > l->cap) {
        const size_t cap = l->cap ? 2 * l->cap : 64 * size;
        char *items = realloc(l->items, cap);
        if (!items) {
            r->full = 1;
            return;
        }
        l->items = items;
        l->cap = cap;
    }
    memcpy(l->items + l->n++ * size, item, size);
}

#define ADD(r, list, type, item) add(r, &(r)->list, &(type){item}, sizeof(type))

static void free_spreads(struct rlhf__phase_reader *r) {
    for (size_t i = 0; i < r->spread.n; i++) {
        struct spread *s = ((struct spread **)(void *)r->spread.items)[i];
        free(s->value);
        free(s->count);
        free(s);
    }
    r->spread.n = 0;
}

static void forget(struct rlhf__phase_reader *r) {
    struct list *all[] = {&r->name,     &r->value,    &r->prompt,     &r->response, &r->score,
                          &r->ref_logp, &r->held_out, &r->warning_id, &r->warning};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        all[i]->n = 0;
    free_spreads(r);
    json_array_clear(r->rows);
    r->phase = (rlhf_sink_phase){0};
}

// ---- opening ----

rlhf_status rlhf__phase_reader_open(struct rlhf__folder *root, struct rlhf__phase_reader **out,
                                    struct rlhf__error *err) {
    struct rlhf__phase_reader *r = *out = calloc(1, sizeof *r);
    if (!r) return RLHF__NOMEM(err, "out of memory for sinks");
    r->files = (struct rlhf__run_files){.root = root, .trouble = json_array()};
    r->rows = json_array();
    rlhf_status st =
        r->files.trouble && r->rows ? RLHF_OK : RLHF__NOMEM(err, "out of memory for sinks");
    for (int i = 0; st == RLHF_OK && i < N_FILES; i++) {
        st = rlhf__run_lines_open(&r->files, names[i], &r->source[i].lines, err);
        r->source[i].open = st == RLHF_OK;
    }
    if (st == RLHF_OK) return st;
    rlhf__phase_reader_close(r);
    *out = NULL;
    return st;
}

void rlhf__phase_reader_close(struct rlhf__phase_reader *r) {
    if (!r) return;
    forget(r);
    for (int i = 0; i < N_FILES; i++)
        if (r->source[i].open) rlhf__run_lines_close(&r->source[i].lines);
    struct list *all[] = {&r->name,     &r->value,    &r->prompt, &r->response,   &r->score,
                          &r->ref_logp, &r->held_out, &r->spread, &r->warning_id, &r->warning};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]->items);
    json_decref(r->rows);
    json_decref(r->files.trouble);
    free(r);
}

// ---- lines ----

// Returns 1 if the file has a line of a phase that is not after `last`. This is then the current
// line of the file until its `has` is cleared.
static int has_line(struct source *s, int64_t last) {
    if (!s->has) {
        rlhf__run_lines_more(&s->lines);
        s->has = rlhf__run_lines_next(&s->lines);
    }
    return s->has && s->lines.phase <= last;
}

// Take the current line. Returns its object, which lives until forget(), or NULL if the line is not
// an object.
static const json_t *take(struct rlhf__phase_reader *r, struct source *s) {
    json_t *row = rlhf__run_lines_row(&s->lines);
    s->has = 0;
    if (row && json_array_append(r->rows, row) != 0) r->full = 1;
    return row;
}

static double number(const json_t *v) { return json_is_number(v) ? json_number_value(v) : NAN; }

// ---- what the lines say ----

static void take_metrics(struct rlhf__phase_reader *r, const json_t *row) {
    const char *name;
    const json_t *value;
    for (void *at = json_object_iter((json_t *)(uintptr_t)row); at;
         at = json_object_iter_next((json_t *)(uintptr_t)row, at)) {
        name = json_object_iter_key(at);
        value = json_object_iter_value(at);
        if (strcmp(name, "phase") == 0) continue;
        ADD(r, name, const char *, name);
        ADD(r, value, double, number(value));
    }
    const double seconds = number(json_object_get(row, "time/training"));
    if (seconds > 0) r->elapsed += seconds;
}

static rlhf_str text(const json_t *v) {
    return (rlhf_str){json_is_string(v) ? json_string_value(v) : "", json_string_length(v)};
}

static void take_sample(struct rlhf__phase_reader *r, const json_t *row) {
    if (json_object_get(row, "label")) return; // a row of training data, not a response
    const rlhf_str prompt = text(json_object_get(row, "prompt"));
    const rlhf_str response = text(json_object_get(row, "response"));
    add(r, &r->prompt, &prompt, sizeof prompt);
    add(r, &r->response, &response, sizeof response);
    ADD(r, score, double, number(json_object_get(row, "reward")));
    ADD(r, ref_logp, double, number(json_object_get(row, "ref_logp")));
    ADD(r, held_out, uint8_t, json_is_true(json_object_get(row, "eval")));
}

// Set the numbers of a spread from "n", a list of pairs, or "q", a list of quantiles. Returns 0 if
// the object has neither.
static int fill_spread(struct spread *s, const json_t *v) {
    const json_t *pairs = json_object_get(v, "n"), *quantiles = json_object_get(v, "q");
    const json_t *list = pairs ? pairs : quantiles;
    const size_t n = json_array_size(list);
    s->value = calloc(n + 1, sizeof *s->value);
    s->count = pairs ? calloc(n + 1, sizeof *s->count) : NULL;
    if (n == 0 || !s->value || (pairs && !s->count)) return 0;
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_array_get(list, i);
        s->value[i] = number(pairs ? json_array_get(one, 0) : one);
        if (pairs) s->count[i] = json_integer_value(json_array_get(one, 1));
        if (pairs) s->api.numbers += s->count[i];
    }
    if (!pairs) s->api.numbers = json_integer_value(json_object_get(v, "c"));
    s->api.n = (uint32_t)n;
    s->api.mean = number(json_object_get(v, "m"));
    s->api.value = s->value;
    s->api.count = s->count;
    return 1;
}

static void take_spreads(struct rlhf__phase_reader *r, const json_t *row) {
    for (void *at = json_object_iter((json_t *)(uintptr_t)row); at;
         at = json_object_iter_next((json_t *)(uintptr_t)row, at)) {
        const json_t *v = json_object_iter_value(at);
        if (!json_is_object(v)) continue;
        struct spread *s = calloc(1, sizeof *s);
        if (!s) {
            r->full = 1;
            return;
        }
        s->api.name = json_object_iter_key(at);
        if (fill_spread(s, v)) {
            ADD(r, spread, struct spread *, s);
            if (!r->full) continue;
        }
        free(s->value);
        free(s->count);
        free(s);
    }
}

static void take_event(struct rlhf__phase_reader *r, const json_t *row) {
    const char *event = json_string_value(json_object_get(row, "event"));
    const char *id = json_string_value(json_object_get(row, "finding"));
    const char *said = json_string_value(json_object_get(row, "text"));
    const json_t *path = json_object_get(row, "path");
    // A crash may have prevented the event "checkpoint". Then a resume names the checkpoint.
    if (event && strcmp(event, "resume") == 0) path = json_object_get(row, "checkpoint");
    if (path) {
        r->phase.checkpoint = json_string_value(path);
        r->phase.flags = json_is_true(json_object_get(row, "best")) ? RLHF_SINK_PHASE_BEST : 0;
    }
    if (!event || strcmp(event, "warning") != 0 || !id || !said) return;
    ADD(r, warning_id, const char *, id);
    ADD(r, warning, const char *, said);
}

// ---- a phase ----

// Take the lines of phase `now`. Lines of earlier phases are left out.
static void take_lines(struct rlhf__phase_reader *r, int file, int64_t now,
                       void (*take_row)(struct rlhf__phase_reader *, const json_t *)) {
    struct source *s = &r->source[file];
    while (has_line(s, now)) {
        const json_t *row = s->lines.phase == now ? take(r, s) : NULL;
        s->has = 0;
        if (row) take_row(r, row);
    }
}

static const void *items_of(const struct list *l) { return l->items; }

static void set_phase(struct rlhf__phase_reader *r, int64_t now) {
    rlhf_sink_phase *p = &r->phase;
    p->n_metrics = (uint32_t)r->name.n;
    p->n_samples = (uint32_t)r->prompt.n;
    p->n_spreads = (uint32_t)r->spread.n;
    p->n_warnings = (uint32_t)r->warning.n;
    p->phases_done = now;
    p->elapsed = r->elapsed;
    p->name = items_of(&r->name);
    p->value = items_of(&r->value);
    p->prompt = items_of(&r->prompt);
    p->response = items_of(&r->response);
    p->score = items_of(&r->score);
    p->ref_logp = items_of(&r->ref_logp);
    p->held_out = items_of(&r->held_out);
    p->spread = items_of(&r->spread); // a struct spread begins with its rlhf_spread
    p->warning_id = items_of(&r->warning_id);
    p->warning = items_of(&r->warning);
}

int32_t rlhf__phase_reader_next(struct rlhf__phase_reader *r, int64_t from, int64_t last,
                                const rlhf_sink_phase **out) {
    struct source *s = &r->source[METRICS];
    while (has_line(s, last)) {
        const int64_t now = s->lines.phase;
        forget(r);
        const json_t *row = take(r, s);
        if (row) take_metrics(r, row);
        if (!row || now < from) continue;
        take_lines(r, SAMPLES, now, take_sample);
        take_lines(r, SPREAD, now, take_spreads);
        take_lines(r, EVENTS, now, take_event);
        if (r->full) return RLHF_E_NOMEM;
        set_phase(r, now);
        *out = &r->phase;
        return 1;
    }
    return 0;
}

double rlhf__phase_reader_elapsed(const struct rlhf__phase_reader *r) { return r->elapsed; }
