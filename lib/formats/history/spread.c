// spread.c: see spread.h.
#include "history/spread.h"

#define COLUMNS   120
#define QUANTILES 33
#define FEW       16 // a distribution with at most this many values lists them with counts

static const char *const names[] = {"reward", "length", "kl", "advantage"};
enum { N_NAMES = sizeof names / sizeof *names };

static int all_numbers(const json_t *list) {
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_number(json_array_get(list, i))) return 0;
    return 1;
}

static int is_quantiles(const json_t *q) {
    if (json_array_size(q) != QUANTILES || !all_numbers(q)) return 0;
    for (size_t i = 1; i < QUANTILES; i++)
        if (json_number_value(json_array_get(q, i)) < json_number_value(json_array_get(q, i - 1)))
            return 0;
    return 1;
}

static int is_counts(const json_t *n) {
    const size_t size = json_array_size(n);
    for (size_t i = 0; i < size; i++) {
        const json_t *pair = json_array_get(n, i);
        if (json_array_size(pair) != 2 || !all_numbers(pair)) return 0;
        if (!(json_number_value(json_array_get(pair, 1)) > 0)) return 0;
    }
    return size > 0 && size <= FEW;
}

// A distribution in the form that the page reads, or null. New reference.
static json_t *checked(const json_t *v) {
    json_t *m = json_object_get(v, "m"), *s = json_object_get(v, "s"), *q = json_object_get(v, "q"),
           *n = json_object_get(v, "n");
    if (!json_is_number(m)) return json_null();
    if (is_quantiles(q) && json_is_number(s))
        return json_pack("{s:O, s:O, s:O}", "m", m, "s", s, "q", q);
    if (is_counts(n)) return json_pack("{s:O, s:O}", "m", m, "n", n);
    return json_null();
}

// The phase that column i shows.
static int64_t column(int64_t first, int64_t last, int64_t i) {
    if (last - first < COLUMNS) return first + i;
    return first + (int64_t)((double)(last - first) * (double)i / (COLUMNS - 1) + 0.5);
}

static void put_row(const json_t *row, int64_t phase, json_t *x, json_t *lists[N_NAMES]) {
    json_array_append_new(x, json_integer(phase));
    for (size_t k = 0; k < N_NAMES; k++)
        json_array_append_new(lists[k], checked(json_object_get(row, names[k])));
}

static int any(const json_t *list) {
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_null(json_array_get(list, i))) return 1;
    return 0;
}

rlhf_status rlhf__spread_read(struct rlhf__run_files *run, json_t **out, struct rlhf__error *err) {
    struct rlhf__run_lines l;
    json_t *ends[2], *x = json_array(), *of = json_object(), *lists[N_NAMES];
    *out = NULL;
    rlhf__run_lines_ends(run, "spread.jsonl", &ends[0], &ends[1]);
    const int64_t first = rlhf__run_row_phase(ends[0]), last = rlhf__run_row_phase(ends[1]);
    json_decref(ends[0]);
    json_decref(ends[1]);
    for (size_t k = 0; k < N_NAMES; k++)
        lists[k] = json_array();
    const rlhf_status st = rlhf__run_lines_open(run, "spread.jsonl", &l, err);
    int64_t i = 0, before = -1;
    while (st == RLHF_OK && i < COLUMNS && rlhf__run_lines_next(&l)) {
        if (l.phase <= before || l.phase > last || l.phase < column(first, last, i)) continue;
        json_t *row = rlhf__run_lines_row(&l);
        if (!row) continue;
        put_row(row, before = l.phase, x, lists);
        while (i < COLUMNS && column(first, last, i) <= l.phase)
            i++;
    }
    rlhf__run_lines_close(&l);
    for (size_t k = 0; k < N_NAMES; k++)
        if (any(lists[k]))
            json_object_set_new(of, names[k], lists[k]);
        else
            json_decref(lists[k]);
    if (json_array_size(x) > 1 && json_object_size(of))
        *out = json_pack("{s:o, s:o}", "x", x, "of", of);
    else {
        json_decref(x);
        json_decref(of);
    }
    return st;
}
