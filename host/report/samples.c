// samples.c: see samples.h.
#include "report/samples.h"

#include "base/json.h"
#include "report/columns.h"
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
    rlhf_status status =
        rlhf__jsonl_open(run, "samples.jsonl", keep_phase, log, &(*out)->rows, err);
    if (status < 0) {
        free(*out);
        *out = NULL;
    }
    return status;
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
    rlhf__buf_puts(b, "}\n");
}

void rlhf__samples_event(struct rlhf__log *log, int64_t phase, const struct rlhf__sample *s) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    put_members(&b, phase, s);
    if (!b.bad) rlhf__log_event(log, "sample", rlhf__buf_text(&b));
    rlhf__buf_free(&b);
}

// A Markdown table for TensorBoard.
static void put_markdown(struct rlhf__buf *b, const struct rlhf__sample *samples, size_t n) {
    rlhf__buf_puts(b, "| reward | ref logp | text |\n|---|---|---|\n");
    for (size_t i = 0; i < n; i++) {
        struct rlhf__buf text = RLHF__BUF_INIT;
        rlhf__put_clipped(&text, samples[i].prompt, 100000);
        rlhf__buf_puts(&text, "**");
        rlhf__put_clipped(&text, samples[i].response, 100000);
        rlhf__buf_puts(&text, "**");
        rlhf__buf_printf(b, "| %.4g | %.4g | ", samples[i].reward, samples[i].ref_logp);
        for (size_t k = 0; k < text.len; k++) {
            if (text.data[k] == '|') rlhf__buf_putc(b, '\\');
            rlhf__buf_putc(b, text.data[k]);
        }
        rlhf__buf_puts(b, " |\n");
        rlhf__buf_free(&text);
    }
}

rlhf_status rlhf__samples_write(struct rlhf__samples *s, int64_t phase,
                                const struct rlhf__sample *samples, size_t n,
                                struct rlhf__metrics *m, struct rlhf__error *err) {
    struct rlhf__buf rows = RLHF__BUF_INIT, table = RLHF__BUF_INIT;
    for (size_t i = 0; i < n; i++)
        put_row(&rows, phase, &samples[i]);
    rlhf_status status = rlhf__jsonl_append(&s->rows, &rows, err);
    if (status == RLHF_OK && m) {
        put_markdown(&table, samples, n);
        status = rlhf__metrics_text(m, phase, "samples",
                                    (rlhf_str){rlhf__buf_text(&table), table.len}, err);
    }
    rlhf__buf_free(&rows);
    rlhf__buf_free(&table);
    return status;
}

rlhf_status rlhf__samples_sync(struct rlhf__samples *s, struct rlhf__error *err) {
    return rlhf__jsonl_sync(&s->rows, err);
}

// ---- the table --------------------------------------------------------------------------------

#define NUMBER_COLUMNS 9

// "  0.9312", or blanks when the number is not known.
static void put_cell(struct rlhf__buf *b, double v) {
    char text[32] = "";
    if (isfinite(v)) snprintf(text, sizeof text, fabs(v) >= 1000 ? "%.0f" : "%.3f", v);
    rlhf__buf_printf(b, "%*s", NUMBER_COLUMNS, text);
}

static void put_rule(struct rlhf__buf *b, const char *left, const char *mid, const char *right,
                     int text_columns) {
    const int columns[] = {NUMBER_COLUMNS + 2, NUMBER_COLUMNS + 2, text_columns + 2};
    for (int c = 0; c < 3; c++) {
        rlhf__buf_puts(b, c ? mid : left);
        for (int i = 0; i < columns[c]; i++)
            rlhf__buf_puts(b, "\xe2\x94\x80");
    }
    rlhf__buf_printf(b, "%s\n", right);
}

// Where to begin with a prompt that fills most of the columns, so that it takes a third of them; at
// a character. 0: show all of it.
static size_t tail_of(rlhf_str prompt, size_t columns) {
    if (prompt.len <= columns * 2 / 3) return 0;
    size_t from = (size_t)prompt.len - columns / 3;
    while (from < prompt.len && ((unsigned char)prompt.ptr[from] & 0xc0) == 0x80)
        from++;
    return from;
}

// Prompt and response as one text, with a mark between them. Of a prompt that would crowd out the
// response only the end is shown.
static void put_text(struct rlhf__buf *b, const struct rlhf__sample *s, int columns, int pad) {
    struct rlhf__buf both = RLHF__BUF_INIT;
    size_t from = tail_of(s->prompt, (size_t)columns);
    if (from) rlhf__buf_puts(&both, "...");
    rlhf__buf_put(&both, s->prompt.ptr + from, (size_t)s->prompt.len - from);
    rlhf__buf_puts(&both, " \xc2\xbb");
    rlhf__buf_put(&both, s->response.ptr, (size_t)s->response.len);
    int used = rlhf__put_clipped(b, (rlhf_str){rlhf__buf_text(&both), both.len}, columns);
    for (; pad && used < columns; used++)
        rlhf__buf_putc(b, ' ');
    rlhf__buf_free(&both);
}

void rlhf__samples_table(FILE *out, int64_t phase, const struct rlhf__sample *samples, size_t n,
                         int width, int boxed) {
    if (width <= 0) width = rlhf__terminal_width(fileno(out), 100);
    const char *bar = boxed ? "\xe2\x94\x82 " : "", *sep = boxed ? " \xe2\x94\x82 " : "  ";
    const char *end = boxed ? " \xe2\x94\x82\n" : "\n";
    int columns = width - 2 * NUMBER_COLUMNS - (boxed ? 10 : 4);
    if (columns < 8) columns = 8;
    char title[40];
    snprintf(title, sizeof title, "text of phase %lld", (long long)phase);
    struct rlhf__buf b = RLHF__BUF_INIT;
    if (boxed) put_rule(&b, "\xe2\x94\x8c", "\xe2\x94\xac", "\xe2\x94\x90", columns);
    rlhf__buf_printf(&b, "%s%*s%s%*s%s%-*.*s%s", bar, NUMBER_COLUMNS, "reward", sep, NUMBER_COLUMNS,
                     "ref logp", sep, boxed ? columns : 0, columns, title, end);
    if (boxed) put_rule(&b, "\xe2\x94\x9c", "\xe2\x94\xbc", "\xe2\x94\xa4", columns);
    for (size_t i = 0; i < n; i++) {
        rlhf__buf_puts(&b, bar);
        put_cell(&b, samples[i].reward);
        rlhf__buf_puts(&b, sep);
        put_cell(&b, samples[i].ref_logp);
        rlhf__buf_puts(&b, sep);
        put_text(&b, &samples[i], columns, boxed);
        rlhf__buf_puts(&b, end);
    }
    if (boxed) put_rule(&b, "\xe2\x94\x94", "\xe2\x94\xb4", "\xe2\x94\x98", columns);
    fwrite(rlhf__buf_text(&b), 1, b.len, out);
    fflush(out);
    rlhf__buf_free(&b);
}
