// show.c: `rlhf-host runs show`: shows whether a run worked, the rules that decided this, and the
// findings.
#include "base/json.h"
#include "base/printable.h"
#include "cmd/commands.h"
#include "cmd/flags.h"
#include "cmd/program.h"
#include "history/judged_run.h"
#include "page/verdict_json.h"
#include "report/next_steps.h"
#include "runs/figures.h"
#include "runs/run_row_json.h"
#include "runs/runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CURVE_COLUMNS = 24 };

struct options {
    int32_t json;
};

// ---- lines ----

struct lines {
    struct rlhf__buf out;
    int32_t width; // of the terminal, 0: no limit
};

// Append a line "label text", with the text wrapped at the indentation.
static void put_line(struct lines *l, const char *label, int indent, const char *text) {
    struct rlhf__buf shown = RLHF__BUF_INIT;
    rlhf__put_printable(&shown, text, strlen(text), "");
    rlhf__buf_printf(&l->out, "%-*s", indent, label);
    const rlhf_str s = {.ptr = rlhf__buf_text(&shown), .len = (uint32_t)shown.len};
    rlhf__put_wrapped(&l->out, s, l->width, indent, indent);
    rlhf__buf_putc(&l->out, '\n');
    if (shown.bad) l->out.bad = 1;
    rlhf__buf_finish(&shown);
}

// "done, 15 of 15 phases in 3:31, started 21 Nov, 182 M"
static void put_state(struct lines *l, const struct rlhf__run_row *r) {
    struct rlhf__buf line = RLHF__BUF_INIT;
    rlhf__buf_printf(&line, "%s: %s, %lld", r->name, rlhf__run_state_name(r->state),
                     (long long)r->phase);
    if (r->wanted > 0) rlhf__buf_printf(&line, " of %lld", (long long)r->wanted);
    const int one = r->wanted > 0 ? r->wanted == 1 : r->phase == 1;
    rlhf__buf_printf(&line, " phase%s", one ? "" : "s");
    if (isfinite(r->seconds)) {
        rlhf__buf_puts(&line, " in ");
        rlhf__put_duration(&line, r->seconds);
    }
    rlhf__buf_puts(&line, ", started ");
    rlhf__put_when(&line, r->started, (double)time(NULL));
    rlhf__buf_puts(&line, ", ");
    rlhf__put_bytes(&line, r->bytes);
    if (*r->version) rlhf__buf_printf(&line, ", rlhf-host %s", r->version);
    if (line.bad) l->out.bad = 1;
    put_line(l, "", 0, rlhf__buf_text(&line));
    if (*r->reason) put_line(l, "", 0, r->reason);
    rlhf__buf_finish(&line);
}

static void put_title(struct lines *l, const struct rlhf__judged_run *run) {
    const struct rlhf__verdict *v = &run->verdict;
    struct rlhf__buf line = RLHF__BUF_INIT;
    rlhf__buf_puts(&line, v->title);
    if (v->headline.metric && l->width > 0) {
        rlhf__buf_puts(&line, "  ");
        rlhf__put_sparkline(&line, rlhf__series_of(&run->series, v->headline.metric),
                            CURVE_COLUMNS);
    }
    if (line.bad) l->out.bad = 1;
    put_line(l, "", 0, rlhf__buf_text(&line));
    if (*v->text) put_line(l, "", 0, v->text);
    if (*v->rule) put_line(l, "  rule: ", 8, v->rule);
    rlhf__buf_finish(&line);
}

static void put_notes(struct lines *l, const struct rlhf__notes *notes) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (notes->n) rlhf__buf_puts(&l->out, "\nfound\n");
    for (size_t i = 0; i < notes->n; i++) {
        const struct rlhf__run_note *n = &notes->all[i];
        rlhf__buf_clear(&text);
        if (n->held.phase > 0)
            rlhf__buf_printf(&text, "since phase %lld: ", (long long)n->held.phase);
        rlhf__buf_puts(&text, n->text);
        char label[16];
        snprintf(label, sizeof label, "  %s", rlhf__note_level_name(n->level));
        put_line(l, label, 8, rlhf__buf_text(&text));
        if (n->rule) put_line(l, "        rule: ", 14, n->rule);
        if (n->change) put_line(l, "        what helps: ", 20, n->change);
    }
    if (text.bad) l->out.bad = 1;
    rlhf__buf_finish(&text);
}

static void put_checks(struct lines *l, const struct rlhf__verdict *v) {
    rlhf__buf_puts(&l->out, v->n_checks ? "\nchecks\n" : "");
    for (size_t i = 0; i < v->n_checks; i++) {
        const int ok = v->check[i].ok;
        put_line(l, ok > 0 ? "  yes" : ok < 0 ? "  open" : "  no", 8, v->check[i].text);
    }
}

// Commands are not wrapped, so that they can be copied.
static void put_next(struct lines *l, const struct rlhf__run_row *r) {
    struct rlhf__buf line = RLHF__BUF_INIT;
    rlhf__next_steps_put_report(&line, r->path);
    rlhf__buf_puts(&l->out, "\nnext\n  ");
    rlhf__put_printable(&l->out, rlhf__buf_text(&line), line.len, "");
    rlhf__buf_clear(&line);
    if (rlhf__run_row_resumes(r)) {
        rlhf__run_row_put_resume(r, &line);
        rlhf__buf_puts(&l->out, "\n  ");
        rlhf__put_printable(&l->out, rlhf__buf_text(&line), line.len, "");
        rlhf__buf_puts(&l->out, "    ");
        rlhf__run_row_put_goes_on(r, &l->out);
    }
    rlhf__buf_putc(&l->out, '\n');
    rlhf__buf_finish(&line);
}

static rlhf_status print_lines(const struct rlhf__run_row *row, const struct rlhf__judged_run *run,
                               struct rlhf__error *err) {
    struct lines l = {RLHF__BUF_INIT, rlhf__terminal_width(STDOUT_FILENO, 0)};
    put_state(&l, row);
    put_title(&l, run);
    put_notes(&l, &run->verdict.notes);
    put_checks(&l, &run->verdict);
    put_next(&l, row);
    const rlhf_status st = rlhf__buf_ok(&l.out, err);
    if (st == RLHF_OK) fputs(rlhf__buf_text(&l.out), stdout);
    rlhf__buf_finish(&l.out);
    return st == RLHF_OK ? rlhf__print_flush(err) : st;
}

// ---- the command ----

static rlhf_status print_object(const struct rlhf__run_row *row, const struct rlhf__judged_run *run,
                                struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    json_t *verdict = NULL, *all = rlhf__run_row_json(row);
    rlhf__verdict_json(&run->verdict, &text);
    rlhf_status st = rlhf__buf_ok(&text, err);
    if (st == RLHF_OK)
        st = rlhf__json_parse("verdict", rlhf__buf_text(&text), text.len, &verdict, err);
    rlhf__buf_finish(&text);
    json_object_set_new(all, "verdict", verdict);
    json_object_set(all, "trouble", run->files.trouble);
    if (st == RLHF_OK) return rlhf__print_json_new(all, err);
    json_decref(all);
    return st;
}

static rlhf_status show(const char *path, int json, struct rlhf__error *err) {
    struct rlhf__judged_run run = {0};
    struct rlhf__run_row row = {0};
    struct rlhf__curve_range range = RLHF__CURVE_RANGE_INIT;
    char real[RLHF__PATH_CAP];
    rlhf_status st = rlhf__run_row_read(
        path, rlhf__path_base(rlhf__path_real(path, real) ? real : path), &row, err);
    if (st == RLHF_OK) st = rlhf__run_files_open(path, &run.files, err);
    if (st == RLHF_OK) {
        rlhf__curve_range_add(&range, &run.files);
        rlhf__curve_range_divide(&range);
        st = rlhf__judged_run_read(&run, &range, err);
    }
    if (st == RLHF_OK) st = rlhf__judged_run_judge(&run, err);
    if (st == RLHF_OK) st = json ? print_object(&row, &run, err) : print_lines(&row, &run, err);
    rlhf__judged_run_finish(&run);
    rlhf__run_row_finish(&row);
    return st;
}

int rlhf__runs_show(const struct rlhf__env *env, int argc, char **argv) {
    static const struct rlhf__flag flags[] = {
        RLHF__FLAG_SW(struct options, "--json", json, "print one JSON object"),
    };
    struct options o = {0};
    struct rlhf__flag_list rest = {0};
    struct rlhf__error err = {0, ""};
    rlhf_status st = rlhf__flags_parse(flags, 1, argc, argv, &o, &rest, &err);
    if (st == RLHF_OK && rest.n != 1)
        st = rlhf__fail(&err, RLHF_E_INVALID,
                        "runs show: give the directory of one run, as in runs show RUN");
    if (st == RLHF_OK) st = show(rest.item[0], o.json, &err);
    free(rest.item);
    return rlhf__cmd_end(env, st, &err);
}
