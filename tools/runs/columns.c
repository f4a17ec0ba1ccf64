// columns.c: see columns.h.
#include "runs/columns.h"

#include "base/printable.h"

#include <limits.h>
#include <string.h>

#define GAP "  "

void rlhf__text_table_finish(struct rlhf__text_table *t) {
    rlhf__buf_finish(&t->text);
    t->n_cells = 0;
}

void rlhf__text_table_cell(struct rlhf__text_table *t, const char *text) {
    rlhf__put_printable(&t->text, text, strlen(text), "");
    rlhf__buf_putc(&t->text, '\0');
    t->n_cells++;
}

void rlhf__text_table_take(struct rlhf__text_table *t, struct rlhf__buf *text) {
    if (text->bad) t->text.bad = 1;
    rlhf__text_table_cell(t, rlhf__buf_text(text));
    rlhf__buf_clear(text);
}

// ---- widths ----

static rlhf_str of(const char *text) {
    return (rlhf_str){.ptr = text, .len = (uint32_t)strlen(text)};
}

static int columns_of(const char *text) {
    struct rlhf__buf unused = RLHF__BUF_INIT;
    const int n = rlhf__put_clipped(&unused, of(text), INT_MAX / 2);
    rlhf__buf_finish(&unused);
    return n;
}

static void measure(const struct rlhf__text_table *t, int *width) {
    const char *cell = rlhf__buf_text(&t->text);
    for (size_t c = 0; c < t->n_columns; c++)
        width[c] = columns_of(t->column[c].title);
    for (size_t i = 0; t->n_columns && i < t->n_cells; i++, cell += strlen(cell) + 1) {
        const int n = columns_of(cell);
        if (n > width[i % t->n_columns]) width[i % t->n_columns] = n;
    }
}

// Returns how many columns fit. If even the first column is too wide, reduces its width.
static size_t fit(const struct rlhf__text_table *t, int most, int *width) {
    size_t n = 0;
    int sum = 0;
    for (; n < t->n_columns; n++) {
        const int gap = n ? (int)strlen(GAP) : 0;
        if (most > 0 && sum + gap + width[n] > most && n > 0) break;
        sum += gap + width[n];
    }
    if (most > 0 && width[0] > most) width[0] = most;
    return n;
}

// ---- lines ----

static void put_cell(const struct rlhf__text_table *t, size_t c, const char *text, int width,
                     struct rlhf__buf *line) {
    struct rlhf__buf shown = RLHF__BUF_INIT;
    const int used = rlhf__put_clipped(&shown, of(text), width);
    rlhf__buf_puts(line, c ? GAP : "");
    if (t->column[c].right) rlhf__buf_printf(line, "%*s", width - used, "");
    rlhf__buf_puts(line, rlhf__buf_text(&shown));
    if (!t->column[c].right) rlhf__buf_printf(line, "%*s", width - used, "");
    if (shown.bad) line->bad = 1;
    rlhf__buf_finish(&shown);
}

// Append the line without the blanks at its end.
static void end_line(struct rlhf__buf *line, struct rlhf__buf *out) {
    size_t n = line->len;
    while (n > 0 && line->data[n - 1] == ' ')
        n--;
    rlhf__buf_put(out, line->data, n);
    rlhf__buf_putc(out, '\n');
    if (line->bad) out->bad = 1;
    rlhf__buf_clear(line);
}

size_t rlhf__text_table_put(const struct rlhf__text_table *t, int width, struct rlhf__buf *out) {
    struct rlhf__buf line = RLHF__BUF_INIT;
    const char *cell = rlhf__buf_text(&t->text);
    int wide[RLHF__TEXT_TABLE_COLUMNS] = {0}, titled = 0;
    measure(t, wide);
    const size_t n = fit(t, width, wide);
    for (size_t c = 0; c < t->n_columns; c++)
        titled |= *t->column[c].title != '\0';
    for (size_t c = 0; c < n && titled; c++)
        put_cell(t, c, t->column[c].title, wide[c], &line);
    if (titled) end_line(&line, out);
    for (size_t i = 0; t->n_columns && i < t->n_cells; i++, cell += strlen(cell) + 1) {
        const size_t c = i % t->n_columns;
        if (c < n) put_cell(t, c, cell, wide[c], &line);
        if (c + 1 == t->n_columns) end_line(&line, out);
    }
    if (t->text.bad) out->bad = 1;
    rlhf__buf_finish(&line);
    return n;
}
