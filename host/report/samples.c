// samples.c: see samples.h.
#include "report/samples.h"

#include "base/decimal.h"
#include "base/json.h"
#include "base/printable.h"
#include "report/jsonl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct rlhf__samples {
    struct rlhf__jsonl rows;
};

rlhf_status rlhf__samples_open(const struct rlhf__folder *run, int64_t keep_phase,
                               struct rlhf__log *log, struct rlhf__samples **out,
                               struct rlhf__error *err) {
    *out = calloc(1, sizeof **out);
    if (!*out) return RLHF__NOMEM(err, "%s: out of memory", run->path);
    rlhf_status st = rlhf__jsonl_open(run, "samples.jsonl", keep_phase, log, &(*out)->rows, err);
    if (st < 0) {
        free(*out);
        *out = NULL;
    }
    return st;
}

void rlhf__samples_close(struct rlhf__samples *s) {
    if (!s) return;
    rlhf__jsonl_close(&s->rows);
    free(s);
}

static void put_number(struct rlhf__buf *b, const char *key, double v) {
    char number[40];
    rlhf__buf_printf(b, ", \"%s\": %s", key, rlhf__format_double(v, 0, number));
}

static void put_members(struct rlhf__buf *b, int64_t phase, const struct rlhf__sample *s) {
    rlhf__buf_printf(b, "\"phase\": %lld, \"prompt\": ", (long long)phase);
    rlhf__json_write_string(b, s->prompt.ptr, (size_t)s->prompt.len);
    rlhf__buf_puts(b, ", \"response\": ");
    rlhf__json_write_string(b, s->response.ptr, (size_t)s->response.len);
    put_number(b, "reward", s->reward);
    put_number(b, "ref_logp", s->ref_logp);
    put_number(b, "logp", s->logp);
}

static void put_row(struct rlhf__buf *b, int64_t phase, const struct rlhf__sample *s) {
    rlhf__buf_putc(b, '{');
    put_members(b, phase, s);
    rlhf__buf_put(b, s->details.ptr, (size_t)s->details.len);
    rlhf__buf_puts(b, "}\n");
}

void rlhf__samples_event(struct rlhf__log *log, int64_t phase, const struct rlhf__sample *s) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    put_members(&b, phase, s);
    if (!b.bad) rlhf__log_event(log, "sample", rlhf__buf_text(&b));
    rlhf__buf_finish(&b);
}

rlhf_status rlhf__samples_write(struct rlhf__samples *s, int64_t phase,
                                const struct rlhf__sample *samples, size_t n,
                                struct rlhf__error *err) {
    struct rlhf__buf rows = RLHF__BUF_INIT;
    if (!s) return RLHF_OK;
    for (size_t i = 0; i < n; i++)
        put_row(&rows, phase, &samples[i]);
    const rlhf_status st = rlhf__jsonl_append(&s->rows, &rows, err);
    rlhf__buf_finish(&rows);
    return st;
}

rlhf_status rlhf__samples_sync(struct rlhf__samples *s, struct rlhf__error *err) {
    return rlhf__jsonl_sync(&s->rows, err);
}

// ---- the table --------------------------------------------------------------------------------

#define NUMBER_COLUMNS 9
#define TEXT_LINES     3  // of each sample in a box
#define TEXT_COLUMNS   40 // in a narrower text column, the reference's log-probs are omitted

// The columns that fit on the terminal.
struct layout {
    const struct rlhf__sample_table *t;
    const char *bar, *sep, *end;
    // numbers: how many columns hold numbers (the reference's is the last of them); text: width of
    // the text
    int numbers, has_ref, text;
};

static struct layout layout_of(const struct rlhf__sample_table *t, const struct rlhf__sample *first,
                               int width) {
    struct layout l = {.t = t, .bar = "", .sep = "  ", .end = "\n", .has_ref = 1};
    if (t->boxed) {
        l.bar = "\xe2\x94\x82 ";
        l.sep = " \xe2\x94\x82 ";
        l.end = " \xe2\x94\x82\n";
    }
    const int each = NUMBER_COLUMNS + (t->boxed ? 3 : 2), around = t->boxed ? 4 : 0;
    l.numbers = 2 + (int)t->n_rewards;
    if (t->no_reward) {
        l.has_ref = first && isfinite(first->ref_logp);
        l.numbers = l.has_ref;
    }
    l.text = width - l.numbers * each - around;
    if (t->n_rewards && l.text < TEXT_COLUMNS) {
        l.has_ref = 0;
        l.numbers--;
        l.text += each;
    }
    if (l.text < 8) l.text = 8;
    return l;
}

static void put_rule(struct rlhf__buf *b, const struct layout *l, const char *left, const char *mid,
                     const char *right) {
    if (!l->t->boxed) return;
    for (int c = 0; c <= l->numbers; c++) {
        rlhf__buf_puts(b, c ? mid : left);
        for (int i = 0; i < (c < l->numbers ? NUMBER_COLUMNS : l->text) + 2; i++)
            rlhf__buf_puts(b, "\xe2\x94\x80");
    }
    rlhf__buf_printf(b, "%s\n", right);
}

// Write "  0.9312", or blanks if the number is not known.
static void put_number_cell(struct rlhf__buf *b, const struct layout *l, double v) {
    char text[32] = "";
    if (isfinite(v)) snprintf(text, sizeof text, fabs(v) >= 1000 ? "%.0f" : "%.3f", v);
    rlhf__buf_printf(b, "%*s%s", NUMBER_COLUMNS, text, l->sep);
}

static void put_name_cell(struct rlhf__buf *b, const struct layout *l, const char *name) {
    struct rlhf__buf cell = RLHF__BUF_INIT;
    const int used = rlhf__put_clipped(&cell, (rlhf_str){name, strlen(name)}, NUMBER_COLUMNS);
    rlhf__buf_printf(b, "%*s%s%s", NUMBER_COLUMNS - used, "", rlhf__buf_text(&cell), l->sep);
    rlhf__buf_finish(&cell);
}

static void put_title(struct rlhf__buf *b, const struct layout *l) {
    char title[40];
    snprintf(title, sizeof title, "text of phase %lld", (long long)l->t->phase);
    put_rule(b, l, "\xe2\x94\x8c", "\xe2\x94\xac", "\xe2\x94\x90");
    rlhf__buf_puts(b, l->bar);
    if (!l->t->no_reward) put_name_cell(b, l, "reward");
    for (size_t k = 0; k < l->t->n_rewards; k++)
        put_name_cell(b, l, l->t->rewards[k]);
    if (l->has_ref) put_name_cell(b, l, "ref logp");
    rlhf__buf_printf(b, "%-*.*s%s", l->t->boxed ? l->text : 0, l->text, title, l->end);
    put_rule(b, l, "\xe2\x94\x9c", "\xe2\x94\xbc", "\xe2\x94\xa4");
}

// Returns the offset from which a prompt is shown. A short prompt is shown as a whole (offset 0).
// Of a prompt that would fill most of the space, only the end is shown, in a third of the space.
static size_t tail_of(rlhf_str prompt, size_t columns) {
    if (prompt.len <= columns * 2 / 3) return 0;
    return rlhf__utf8_floor(prompt.ptr, (size_t)prompt.len - columns / 3);
}

// Join prompt and response, with a mark between them. If the prompt is long, only its end is kept,
// to leave space for the response.
static void join_text(struct rlhf__buf *both, const struct rlhf__sample *s, int columns) {
    size_t from = tail_of(s->prompt, (size_t)columns);
    if (from) rlhf__buf_puts(both, "...");
    rlhf__buf_put(both, s->prompt.ptr + from, (size_t)s->prompt.len - from);
    rlhf__buf_puts(both, " \xc2\xbb");
    rlhf__buf_put(both, s->response.ptr, (size_t)s->response.len);
}

static void put_sample(struct rlhf__buf *b, const struct layout *l, const struct rlhf__sample *s) {
    const int lines = l->t->boxed ? TEXT_LINES : 1;
    struct rlhf__buf both = RLHF__BUF_INIT;
    join_text(&both, s, l->text * lines);
    rlhf_str left = {rlhf__buf_text(&both), both.len};
    for (int line = 0; line < lines && (line == 0 || left.len); line++) {
        const size_t fits = rlhf__wrap_at(left, l->text);
        const rlhf_str now = {left.ptr, line == lines - 1 ? left.len : fits};
        rlhf__buf_puts(b, l->bar);
        if (!l->t->no_reward) put_number_cell(b, l, line ? NAN : s->reward);
        for (size_t k = 0; k < l->t->n_rewards; k++)
            put_number_cell(b, l, line || !s->paid ? NAN : (double)s->paid[k]);
        if (l->has_ref) put_number_cell(b, l, line ? NAN : s->ref_logp);
        int used = rlhf__put_clipped(b, now, l->text);
        for (; l->t->boxed && used < l->text; used++)
            rlhf__buf_putc(b, ' ');
        rlhf__buf_puts(b, l->end);
        left = (rlhf_str){left.ptr + now.len, left.len - now.len};
    }
    rlhf__buf_finish(&both);
}

void rlhf__samples_put(struct rlhf__buf *out, const struct rlhf__sample_table *t,
                       const struct rlhf__sample *samples, size_t n) {
    const struct layout l = layout_of(t, n ? samples : NULL, t->width);
    put_title(out, &l);
    for (size_t i = 0; i < n; i++)
        put_sample(out, &l, &samples[i]);
    put_rule(out, &l, "\xe2\x94\x94", "\xe2\x94\xb4", "\xe2\x94\x98");
}

void rlhf__samples_table(FILE *out, const struct rlhf__sample_table *t,
                         const struct rlhf__sample *samples, size_t n) {
    struct rlhf__sample_table sized = *t;
    struct rlhf__buf b = RLHF__BUF_INIT;
    if (sized.width <= 0) sized.width = rlhf__terminal_width(fileno(out), 100);
    rlhf__samples_put(&b, &sized, samples, n);
    fwrite(rlhf__buf_text(&b), 1, b.len, out);
    fflush(out);
    rlhf__buf_finish(&b);
}
