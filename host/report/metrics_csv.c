// metrics_csv.c: metrics.csv: a header "phase,<sorted names>", then one line per phase. A cell is
// empty if the phase lacks the metric, and nan if the value is not finite.
//
// When a phase has a metric without a column, the file is atomically replaced by one that has this
// column. A resumed run removes the rows of the phases after its checkpoint, and the columns that
// had values only in these rows. The file is then byte for byte the same as the file of an
// uninterrupted run.
#include "report/metrics_file.h"

#include "base/decimal.h"
#include "base/file.h"
#include "base/json.h"
#include "report/jsonl.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_BYTES ((uint64_t)1 << 32)

// ---- columns: sorted names, without characters that a header line cannot hold ----

struct columns {
    char **name; // [n]; commas, quotes and control characters are replaced by '_'
    size_t n, cap;
};

#define NO_COLUMN SIZE_MAX

static unsigned char clean(char c) {
    return c == ',' || c == '"' || (unsigned char)c < ' ' ? '_' : (unsigned char)c;
}

// Compares like strcmp: the result is negative if the column sorts before the name, and 0 if they
// are equal.
static int order(const char *column, rlhf_str name) {
    for (uint64_t i = 0; i < name.len; i++)
        if ((unsigned char)column[i] != clean(name.ptr[i]))
            return (unsigned char)column[i] < clean(name.ptr[i]) ? -1 : 1;
    return column[name.len] ? 1 : 0;
}

static size_t place(const struct columns *c, rlhf_str name, int *there) {
    size_t lo = 0, hi = c->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (order(c->name[mid], name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *there = lo < c->n && order(c->name[lo], name) == 0;
    return lo;
}

// Returns the index of the column with that name, or NO_COLUMN.
static size_t columns_find(const struct columns *c, rlhf_str name) {
    int there;
    size_t at = place(c, name, &there);
    return there ? at : NO_COLUMN;
}

// Add a column with that name unless it exists.
static rlhf_status columns_add(struct columns *c, rlhf_str name, struct rlhf__error *err) {
    int there;
    size_t at = place(c, name, &there);
    if (there) return RLHF_OK;
    char *copy = strndup(name.ptr, (size_t)name.len);
    if (c->n == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 64;
        char **all = realloc(c->name, cap * sizeof *all);
        if (all) {
            c->name = all;
            c->cap = cap;
        }
    }
    if (!copy || c->n == c->cap) {
        free(copy);
        return RLHF__NOMEM(err, "out of memory for columns");
    }
    for (char *p = copy; *p; p++)
        *p = (char)clean(*p);
    memmove(c->name + at + 1, c->name + at, (c->n - at) * sizeof *c->name);
    c->name[at] = copy;
    c->n++;
    return RLHF_OK;
}

static void columns_finish(struct columns *c) {
    for (size_t i = 0; i < c->n; i++)
        free(c->name[i]);
    free(c->name);
    *c = (struct columns){0};
}

// ---- the file ----

struct csv {
    const struct rlhf__folder *run;
    char *path; // for messages
    int fd;
    int has_header;
    struct columns columns; // without "phase"
};

// ---- reading the old file ----

struct reading {
    struct rlhf__buf text;
    rlhf_str *name, *cell; // [n] fields of the header and of the current row; [0] is the phase
    size_t n;
    const char *row, *stop; // start and end of the rows
};

static void reading_finish(struct reading *r) {
    rlhf__buf_free(&r->text);
    free(r->name);
    free(r->cell);
}

// Split a line into cell[max]. Returns the number of cells in the line.
static size_t split(const char *line, const char *end, rlhf_str *cell, size_t max) {
    for (size_t n = 0;; n++) {
        const char *comma = memchr(line, ',', (size_t)(end - line));
        if (n < max) cell[n] = (rlhf_str){line, (uint64_t)((comma ? comma : end) - line)};
        if (!comma) return n + 1;
        line = comma + 1;
    }
}

static rlhf_status read_file(const struct csv *c, struct reading *r, struct rlhf__error *err) {
    if (lseek(c->fd, 0, SEEK_SET) != 0)
        return rlhf__fail(err, RLHF_E_IO, "%s: cannot read: %s", c->path, strerror(errno));
    RLHF_TRY(rlhf__file_read_fd(c->fd, c->path, MAX_BYTES, &r->text, err));
    const char *text = rlhf__buf_text(&r->text), *end = memchr(text, '\n', r->text.len);
    r->row = r->stop = text + r->text.len;
    if (!end) return RLHF_OK; // the file is empty, or the process died while writing the header
    r->n = split(text, end, NULL, 0);
    r->name = calloc(r->n, sizeof *r->name);
    r->cell = calloc(r->n, sizeof *r->cell);
    if (!r->name || !r->cell) return RLHF__NOMEM(err, "%s: out of memory", c->path);
    split(text, end, r->name, r->n);
    r->row = end + 1;
    if (r->name[0].len == 5 && memcmp(text, "phase", 5) == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s:1: expected the header of a run's metrics, which begins with \"phase\"; "
                      "move the file away",
                      c->path);
}

// Returns the phase in the line's cells, or -1 if the line is not a row of this file.
static int64_t phase_of(struct reading *r, const char *line, const char *eol) {
    char *end;
    if (split(line, eol, r->cell, r->n) != r->n) return -1;
    long long phase = strtoll(line, &end, 10);
    return end > line && end == r->cell[0].ptr + r->cell[0].len && phase >= 0 ? phase : -1;
}

// Call `visit` for each row of a phase <= keep_phase. During the call, r->cell holds the row's
// cells. If `odd` is not NULL, the number of lines that are not rows is added to `*odd`. A last
// line without a newline is skipped, because the process died while writing it.
static rlhf_status each_row(struct reading *r, int64_t keep_phase, int64_t *odd,
                            rlhf_status (*visit)(void *arg, const struct reading *,
                                                 struct rlhf__error *),
                            void *arg, struct rlhf__error *err) {
    for (const char *line = r->row, *eol; r->n && line < r->stop; line = eol + 1) {
        eol = memchr(line, '\n', (size_t)(r->stop - line));
        if (!eol) break;
        int64_t phase = phase_of(r, line, eol);
        if (odd) *odd += phase < 0;
        if (phase >= 0 && phase <= keep_phase) RLHF_TRY(visit(arg, r, err));
    }
    return RLHF_OK;
}

// ---- rewriting ----

struct copy {
    const struct columns *to;
    struct rlhf__file_writer *out;
    struct rlhf__buf line;
    rlhf_str *cell; // [to->n]
};

static rlhf_status put_line(struct copy *c, struct rlhf__error *err) {
    rlhf__buf_putc(&c->line, '\n');
    RLHF_TRY(rlhf__buf_ok(&c->line, err));
    return rlhf__file_writer_put(c->out, c->line.data, c->line.len, err);
}

// Write the row r->cell under the new columns.
static rlhf_status copy_row(void *arg, const struct reading *r, struct rlhf__error *err) {
    struct copy *c = arg;
    memset(c->cell, 0, c->to->n * sizeof *c->cell);
    for (size_t i = 1; i < r->n; i++) {
        size_t at = columns_find(c->to, r->name[i]);
        if (at != NO_COLUMN) c->cell[at] = r->cell[i];
    }
    rlhf__buf_clear(&c->line);
    rlhf__buf_put(&c->line, r->cell[0].ptr, (size_t)r->cell[0].len);
    for (size_t i = 0; i < c->to->n; i++) {
        rlhf__buf_putc(&c->line, ',');
        rlhf__buf_put(&c->line, c->cell[i].ptr, (size_t)c->cell[i].len);
    }
    return put_line(c, err);
}

static rlhf_status copy_all(struct copy *c, struct reading *r, int64_t keep_phase,
                            struct rlhf__error *err) {
    c->cell = calloc(c->to->n + 1, sizeof *c->cell);
    if (!c->cell) return RLHF__NOMEM(err, "out of memory for columns");
    rlhf__buf_puts(&c->line, "phase");
    for (size_t i = 0; i < c->to->n; i++)
        rlhf__buf_printf(&c->line, ",%s", c->to->name[i]);
    RLHF_TRY(put_line(c, err));
    return each_row(r, keep_phase, NULL, copy_row, c, err);
}

// Rewrite the file with the columns `*to`, and keep only the rows of phases <= keep_phase. Takes
// ownership of the columns.
static rlhf_status rewrite(struct csv *c, struct reading *r, struct columns *to, int64_t keep_phase,
                           struct rlhf__error *err) {
    struct copy copy = {.to = to};
    int fd = -1;
    RLHF_TRY(rlhf__file_writer_open(c->run, rlhf__metrics_file_csv.name, &copy.out, err));
    rlhf_status st = copy_all(&copy, r, keep_phase, err);
    rlhf__buf_free(&copy.line);
    free(copy.cell);
    if (st != RLHF_OK) {
        rlhf__file_writer_abort(copy.out);
        return st;
    }
    RLHF_TRY(rlhf__file_writer_commit(copy.out, err));
    RLHF_TRY(rlhf__folder_append(c->run, rlhf__metrics_file_csv.name, 0, &fd, err));
    close(c->fd);
    c->fd = fd;
    c->has_header = 1;
    columns_finish(&c->columns);
    c->columns = *to;
    *to = (struct columns){0};
    return RLHF_OK;
}

// Add the columns in which the row r->cell has a value.
static rlhf_status add_used(void *arg, const struct reading *r, struct rlhf__error *err) {
    for (size_t i = 1; i < r->n; i++)
        if (r->cell[i].len > 0) RLHF_TRY(columns_add(arg, r->name[i], err));
    return RLHF_OK;
}

static rlhf_status cut(struct csv *c, int64_t keep_phase, struct rlhf__log *log,
                       struct rlhf__error *err) {
    struct reading r = {0};
    struct columns used = {0};
    int64_t odd = 0;
    rlhf_status st = read_file(c, &r, err);
    if (st == RLHF_OK) st = each_row(&r, keep_phase, &odd, add_used, &used, err);
    if (st == RLHF_OK && odd > 0)
        rlhf__logf(log, RLHF_LOG_WARN, "%s: %lld line%s no row of this file; left out", c->path,
                   (long long)odd, odd == 1 ? " is" : "s are");
    if (st == RLHF_OK) st = rewrite(c, &r, &used, keep_phase, err);
    columns_finish(&used);
    reading_finish(&r);
    return st;
}

// ---- the file ----

static int32_t csv_wanted(const struct rlhf__log_config *log) { return log->csv; }

static rlhf_status csv_open(const struct rlhf__folder *run, int64_t keep_phase,
                            struct rlhf__log *log, void **self, struct rlhf__error *err) {
    struct csv *c = *self = calloc(1, sizeof *c);
    if (!c) return RLHF__NOMEM(err, "%s: out of memory", run->path);
    c->fd = -1;
    c->run = run;
    c->path = rlhf__path_join(run->path, rlhf__metrics_file_csv.name);
    if (!c->path) return RLHF__NOMEM(err, "%s: out of memory", run->path);
    RLHF_TRY(rlhf__folder_append(run, rlhf__metrics_file_csv.name, keep_phase < 0, &c->fd, err));
    return keep_phase < 0 ? RLHF_OK : cut(c, keep_phase, log, err);
}

static rlhf_str text_of(const char *s) { return (rlhf_str){s, strlen(s)}; }

// Add a column for each name in the row that does not have a column yet.
static rlhf_status widen(struct csv *c, const struct rlhf__metrics_row *row,
                         struct rlhf__error *err) {
    struct reading r = {0};
    struct columns all = {0};
    rlhf_status st = RLHF_OK;
    for (size_t i = 0; st == RLHF_OK && i < c->columns.n; i++)
        st = columns_add(&all, text_of(c->columns.name[i]), err);
    for (size_t i = 0; st == RLHF_OK && i < row->n; i++)
        st = columns_add(&all, text_of(row->metric[i].name), err);
    if (st == RLHF_OK && (all.n > c->columns.n || !c->has_header)) {
        st = read_file(c, &r, err);
        if (st == RLHF_OK) st = rewrite(c, &r, &all, INT64_MAX, err);
    }
    columns_finish(&all);
    reading_finish(&r);
    return st;
}

static rlhf_status csv_row(void *self, const struct rlhf__metrics_row *row,
                           struct rlhf__error *err) {
    struct csv *c = self;
    struct rlhf__buf line = RLHF__BUF_INIT;
    char number[40];
    RLHF_TRY(widen(c, row, err));
    const double **value = calloc(c->columns.n + 1, sizeof *value);
    if (!value) return RLHF__NOMEM(err, "%s: out of memory", c->path);
    for (size_t i = 0; i < row->n; i++)
        value[columns_find(&c->columns, text_of(row->metric[i].name))] = &row->metric[i].value;
    rlhf__buf_printf(&line, "%lld", (long long)row->phase);
    for (size_t i = 0; i < c->columns.n; i++) {
        rlhf__buf_putc(&line, ',');
        if (!value[i]) continue;
        rlhf__buf_puts(&line,
                       isfinite(*value[i]) ? rlhf__format_double(*value[i], 0, number) : "nan");
    }
    rlhf__buf_putc(&line, '\n');
    rlhf_status st = rlhf__append_buf(c->fd, c->path, &line, err);
    rlhf__buf_free(&line);
    free(value);
    return st;
}

static rlhf_status csv_sync(void *self, struct rlhf__error *err) {
    struct csv *c = self;
    return rlhf__append_sync(c->fd, c->path, err);
}

static void csv_close(void *self) {
    struct csv *c = self;
    if (!c) return;
    if (c->fd >= 0) close(c->fd);
    columns_finish(&c->columns);
    free(c->path);
    free(c);
}

const struct rlhf__metrics_file rlhf__metrics_file_csv = {.name = "metrics.csv",
                                                          .wanted = csv_wanted,
                                                          .open = csv_open,
                                                          .row = csv_row,
                                                          .sync = csv_sync,
                                                          .close = csv_close};
