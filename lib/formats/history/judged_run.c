// judged_run.c: see judged_run.h.
#include "history/judged_run.h"

#include "history/spread.h"
#include "history/texts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// Findings that concern a single phase. They are taken from the warnings that training logged,
// because the rules cannot find them in the series.
static const char *const of_a_phase[] = {"far", "jumped", "exploded", "diverged", "fell"};
enum { OF_A_PHASE = sizeof of_a_phase / sizeof *of_a_phase };

static int same_directory(const struct rlhf__folder *a, const struct rlhf__folder *b) {
    struct stat x, y;
    return fstat(a->fd, &x) == 0 && fstat(b->fd, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

rlhf_status rlhf__judged_runs_open(const char *const *paths, size_t n, struct rlhf__judged_run *run,
                                   struct rlhf__curve_range *range, struct rlhf__error *err) {
    for (size_t i = 0; i < n; i++) {
        RLHF_TRY(rlhf__run_files_open(paths[i], &run[i].files, err));
        for (size_t k = 0; k < i; k++)
            if (same_directory(run[k].files.root, run[i].files.root))
                return rlhf__fail(err, RLHF_E_INVALID, "the run '%s' is given twice", paths[i]);
        rlhf__curve_range_add(range, &run[i].files);
    }
    rlhf__curve_range_divide(range);
    return RLHF_OK;
}

static int is_of_a_phase(const char *finding) {
    for (size_t i = 0; finding && i < OF_A_PHASE; i++)
        if (strcmp(finding, of_a_phase[i]) == 0) return 1;
    return 0;
}

// Reads the warnings that training logged, and how many phases it planned. Does not report lines
// that cannot be read, because commands that show more of the file report them.
static rlhf_status read_events(struct rlhf__judged_run *r, struct rlhf__error *err) {
    struct rlhf__run_lines l;
    json_t *const said = r->files.trouble;
    r->files.trouble = json_array();
    r->warned = json_object();
    const rlhf_status st = rlhf__run_lines_open(&r->files, "events.jsonl", &l, err);
    while (st == RLHF_OK && rlhf__run_lines_next(&l)) {
        json_t *row = rlhf__run_lines_row(&l);
        const char *finding = json_string_value(json_object_get(row, "finding"));
        const json_int_t phases = json_integer_value(json_object_get(row, "phases"));
        if (phases > 0) r->phases = (int64_t)phases;
        if (is_of_a_phase(finding) && !json_object_get(r->warned, finding))
            json_object_set(r->warned, finding, row);
    }
    rlhf__run_lines_close(&l);
    json_decref(r->files.trouble);
    r->files.trouble = said;
    return st;
}

rlhf_status rlhf__judged_run_read(struct rlhf__judged_run *r, const struct rlhf__curve_range *range,
                                  struct rlhf__error *err) {
    RLHF_TRY(rlhf__curves_read(&r->files, range, &r->curves, &r->series, err));
    RLHF_TRY(rlhf__spread_read(&r->files, &r->spread, err));
    RLHF_TRY(read_events(r, err));
    return rlhf__texts_read(&r->files, &r->texts, err);
}

// Lists the warnings. If there is the warning "far" (the policy is far from the reference), lists
// only this one, because the others only describe how the policy got there.
static size_t list_warnings(const struct rlhf__judged_run *r, struct rlhf__reported *out) {
    const size_t n = json_object_get(r->warned, of_a_phase[0]) ? 1 : OF_A_PHASE;
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        const json_t *row = json_object_get(r->warned, of_a_phase[i]);
        const char *text = json_string_value(json_object_get(row, "text"));
        if (text) out[used++] = (struct rlhf__reported){text, rlhf__run_row_phase(row)};
    }
    return used;
}

rlhf_status rlhf__judged_run_judge(struct rlhf__judged_run *r, struct rlhf__error *err) {
    struct rlhf__run_facts facts;
    struct rlhf__reported reported[OF_A_PHASE];
    const size_t n = json_array_size(r->files.trouble);
    const char **trouble = calloc(n + 1, sizeof *trouble);
    if (!trouble) return RLHF__NOMEM(err, "out of memory");
    for (size_t i = 0; i < n; i++)
        trouble[i] = json_string_value(json_array_get(r->files.trouble, i));
    rlhf__run_facts_read(r->files.config, &facts);
    if (facts.phases == 0) facts.phases = r->phases;
    facts.trouble = trouble;
    facts.n_trouble = n;
    facts.reported = reported;
    facts.n_reported = list_warnings(r, reported);
    const struct rlhf__history history = {&r->series, &facts};
    const rlhf_status st = rlhf__verdict_make(&history, &r->verdict, err);
    free(trouble);
    return st;
}

void rlhf__judged_run_finish(struct rlhf__judged_run *r) {
    rlhf__verdict_finish(&r->verdict);
    rlhf__series_set_finish(&r->series);
    rlhf__curves_finish(&r->curves);
    json_decref(r->warned);
    json_decref(r->spread);
    json_decref(r->texts);
    rlhf__run_files_close(&r->files);
    *r = (struct rlhf__judged_run){0};
}
