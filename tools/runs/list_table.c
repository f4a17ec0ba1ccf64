// list_table.c: see list_table.h.
#include "runs/list_table.h"

#include "base/printable.h"
#include "config/command_text.h"
#include "runs/columns.h"
#include "runs/figures.h"
#include "verdict/notes.h"

#include <rlhf/base.h>

#include <math.h>
#include <string.h>

enum { REASON_COLUMNS = 60 }; // of a failed run's error, which 'runs show' prints whole

// ---- cells ----

// Returns a short word for the metric that a run is judged by.
static const char *brief(const struct rlhf__headline *h) {
    static const struct {
        const char *metric, *word;
    } all[] = {{"objective/verifiable_correct_rate", "right"},
               {"objective/scores", "reward"},
               {"reward_model/accuracy", "accuracy"},
               {"dpo/accuracy", "accuracy"},
               {"classify/accuracy", "accuracy"},
               {"sft/bits_per_token", "bits"},
               {"objective/loss", "loss"}};
    if (!h->metric) return NULL;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].metric, h->metric) == 0) return all[i].word;
    return h->word;
}

// Returns the short word if all runs have the same one, "reward" if no run has one, or NULL if the
// words differ.
static const char *common_word(const struct rlhf__runs_found *f) {
    const char *word = NULL;
    for (size_t i = 0; i < f->n; i++) {
        const char *one = brief(&f->all[i].headline);
        if (one && word && strcmp(one, word) != 0) return NULL;
        if (one) word = one;
    }
    return word ? word : "reward";
}

static void put_phase(const struct rlhf__run_row *r, struct rlhf__buf *out) {
    if (r->wanted > 0)
        rlhf__buf_printf(out, "%lld/%lld", (long long)r->phase, (long long)r->wanted);
    else
        rlhf__buf_printf(out, "%lld", (long long)r->phase);
}

static void put_headline(const struct rlhf__run_row *r, int with_word, struct rlhf__buf *out) {
    char a[40], b[40];
    if (!r->headline.metric) return;
    if (with_word) rlhf__buf_printf(out, "%s ", brief(&r->headline));
    rlhf__buf_puts(out, rlhf__figure(r->first, a));
    if (r->phase > 1) rlhf__buf_printf(out, " → %s", rlhf__figure(r->last, b));
}

// Returns 1 if another version of the program started the run. Ignores the third number of a
// version.
static int of_another_version(const struct rlhf__run_row *r) {
    static const char own[] = RLHF_SDK_VERSION;
    const char *dot = strchr(own, '.'), *end = dot ? strchr(dot + 1, '.') : NULL;
    const size_t n = end ? (size_t)(end + 1 - own) : sizeof own - 1;
    return *r->version && strncmp(r->version, own, n) != 0;
}

static void put_note(const struct rlhf__run_row *r, struct rlhf__buf *out) {
    const size_t begin = out->len;
    const char *trouble = json_string_value(json_array_get(r->trouble, 0));
    if (isfinite(r->left)) {
        rlhf__buf_puts(out, "ETA ");
        rlhf__put_duration(out, r->left);
    }
    if (rlhf__run_row_resumes(r)) {
        rlhf__run_row_put_resume(r, out);
        rlhf__buf_putc(out, ' ');
        rlhf__run_row_put_goes_on(r, out);
    }
    if (r->state == RLHF__RUN_STOPPED || r->state == RLHF__RUN_FAILED || r->state == RLHF__RUN_DIED)
        rlhf__buf_puts(out, r->checkpoint > 0 ? "" : "no checkpoint to resume from");
    if (r->state == RLHF__RUN_FAILED && *r->reason) {
        rlhf__buf_puts(out, out->len > begin ? "; " : "");
        rlhf__put_clipped(out, (rlhf_str){r->reason, strlen(r->reason)}, REASON_COLUMNS);
    }
    if (of_another_version(r))
        rlhf__buf_printf(out, "%sof version %s", out->len > begin ? "; " : "", r->version);
    if (trouble) rlhf__buf_printf(out, "%s%s", out->len > begin ? "; " : "", trouble);
}

static void put_row(struct rlhf__text_table *t, const struct rlhf__run_row *r, int with_word,
                    double now) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    char kl[40];
    rlhf__text_table_cell(t, r->name);
    rlhf__text_table_cell(t, rlhf__run_state_name(r->state));
    put_phase(r, &text);
    rlhf__text_table_take(t, &text);
    put_headline(r, with_word, &text);
    rlhf__text_table_take(t, &text);
    rlhf__text_table_cell(t, isfinite(r->kl) ? rlhf__figure(r->kl, kl) : "");
    rlhf__put_duration(&text, r->seconds);
    rlhf__text_table_take(t, &text);
    rlhf__put_bytes(&text, r->bytes);
    rlhf__text_table_take(t, &text);
    rlhf__put_when(&text, r->started, now);
    rlhf__text_table_take(t, &text);
    put_note(r, &text);
    rlhf__text_table_take(t, &text);
    rlhf__buf_finish(&text);
}

// ---- below the table ----

static void put_foot(const struct rlhf__runs_found *f, const struct rlhf__list_view *v,
                     struct rlhf__buf *out) {
    struct rlhf__buf line = RLHF__BUF_INIT;
    int64_t bytes = 0;
    for (size_t i = 0; i < f->n; i++)
        bytes += f->all[i].bytes;
    if (f->n)
        rlhf__buf_printf(&line, "%zu run%s in %s, ", f->n, f->n == 1 ? "" : "s", v->dir);
    else
        rlhf__buf_printf(&line, "no runs in %s", v->dir);
    if (f->n) rlhf__put_bytes(&line, bytes);
    if (v->freed > 0) {
        rlhf__buf_puts(&line, "; '");
        rlhf__command_begin(&line, "runs prune");
        if (strcmp(v->dir, "runs") != 0) rlhf__command_path(&line, v->dir);
        rlhf__buf_puts(&line, " --keep-last' would free ");
        rlhf__put_bytes(&line, v->freed);
    }
    if (f->others)
        rlhf__buf_printf(&line, "; %lld other director%s", (long long)f->others,
                         f->others == 1 ? "y is not a run" : "ies are not runs");
    if (f->closed)
        rlhf__buf_printf(&line, "; %lld director%s cannot be read", (long long)f->closed,
                         f->closed == 1 ? "y" : "ies");
    rlhf__put_printable(out, rlhf__buf_text(&line), line.len, "");
    rlhf__buf_putc(out, '\n');
    if (line.bad) out->bad = 1;
    rlhf__buf_finish(&line);
}

static int any_resumes(const struct rlhf__runs_found *f) {
    for (size_t i = 0; i < f->n; i++)
        if (rlhf__run_row_resumes(&f->all[i])) return 1;
    return 0;
}

void rlhf__list_table_put(const struct rlhf__runs_found *f, const struct rlhf__list_view *v,
                          struct rlhf__buf *out) {
    const char *word = common_word(f);
    struct rlhf__text_table t = {.column = {{"run", 0},
                                            {"state", 0},
                                            {"phase", 1},
                                            {word ? word : "first → last", 0},
                                            {"kl", 1},
                                            {"time", 1},
                                            {"size", 1},
                                            {"started", 0},
                                            {"", 0}},
                                 .n_columns = 9};
    const size_t shown = v->most > 0 && (size_t)v->most < f->n ? (size_t)v->most : f->n;
    for (size_t i = 0; i < shown; i++)
        put_row(&t, &f->all[i], word == NULL, v->now);
    size_t left = t.n_columns;
    if (f->n) left = rlhf__text_table_put(&t, v->width, out);
    if (shown < f->n) rlhf__buf_printf(out, "... and %zu older\n", f->n - shown);
    put_foot(f, v, out);
    if (left < t.n_columns && any_resumes(f))
        rlhf__buf_puts(out, "Runs that stopped, failed or died go on with 'rlhf-host --resume "
                            "RUN'.\n");
    rlhf__text_table_finish(&t);
}
