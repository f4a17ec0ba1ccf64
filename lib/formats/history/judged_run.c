// judged_run.c: see judged_run.h.
#include "history/judged_run.h"

#include "history/spread.h"
#include "history/texts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

// Reads how many phases training planned. Does not report lines
// that cannot be read, because commands that show more of the file report them.
static rlhf_status read_events(struct rlhf__judged_run *r, struct rlhf__error *err) {
    struct rlhf__run_lines l;
    json_t *const said = r->files.trouble;
    r->files.trouble = json_array();
    const rlhf_status st = rlhf__run_lines_open(&r->files, "events.jsonl", &l, err);
    while (st == RLHF_OK && rlhf__run_lines_next(&l)) {
        const json_t *row = rlhf__run_lines_row(&l);
        const json_int_t phases = json_integer_value(json_object_get(row, "phases"));
        if (phases > 0) r->phases = (int64_t)phases;
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

rlhf_status rlhf__judged_run_judge(struct rlhf__judged_run *r, struct rlhf__error *err) {
    struct rlhf__run_facts facts;
    const size_t n = json_array_size(r->files.trouble);
    const char **trouble = calloc(n + 1, sizeof *trouble);
    if (!trouble) return RLHF__NOMEM(err, "out of memory");
    for (size_t i = 0; i < n; i++)
        trouble[i] = json_string_value(json_array_get(r->files.trouble, i));
    rlhf__run_facts_read(r->files.config, &facts);
    if (facts.phases == 0) facts.phases = r->phases;
    facts.trouble = trouble;
    facts.n_trouble = n;
    const struct rlhf__history history = {&r->series, &facts};
    const rlhf_status st = rlhf__verdict_make(&history, &r->verdict, err);
    free(trouble);
    return st;
}

void rlhf__judged_run_finish(struct rlhf__judged_run *r) {
    rlhf__verdict_finish(&r->verdict);
    rlhf__series_set_finish(&r->series);
    rlhf__curves_finish(&r->curves);
    json_decref(r->spread);
    json_decref(r->texts);
    rlhf__run_files_close(&r->files);
    *r = (struct rlhf__judged_run){0};
}
