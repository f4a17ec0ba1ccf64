// full_screen.c: see full_screen.h.
#include "report/full_screen.h"

#include "base/alternate.h"
#include "base/printable.h"
#include "verdict/notes.h"
#include "verdict/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define CURVE_COLUMNS 20
#define SAID_BYTES    16384 // read from the end of `kept`, to find the newest line

struct rlhf__full_screen {
    struct rlhf__log *log;
    FILE *log_out; // the log's own stream
    FILE *kept;    // log lines and tables, until the screen is closed
    int fd;        // of `kept`
    int32_t rows, columns;
    char *title;
    struct rlhf__series_set series; // of the metrics in `wanted`
    struct rlhf__buf samples;       // the lines of the newest samples
    struct rlhf__buf said;          // the newest line of the log
};

// ---- the terminal ----

static int size_of(int32_t *rows, int32_t *columns) {
    struct winsize w;
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) != 0) return 0;
    *rows = w.ws_row;
    *columns = w.ws_col;
    return 1;
}

int rlhf__full_screen_fits(void) {
    int32_t rows, columns;
    return size_of(&rows, &columns) && rows >= RLHF__FULL_ROWS && columns >= RLHF__FULL_COLUMNS;
}

struct rlhf__full_screen *rlhf__full_screen_open(struct rlhf__log *log, const char *title) {
    struct rlhf__full_screen *s = calloc(1, sizeof *s);
    if (!s || !(s->title = strdup(title))) {
        free(s);
        return NULL;
    }
    fflush(stdout);
    s->fd = rlhf__alternate_open();
    const int own = s->fd < 0 ? -1 : dup(s->fd); // the stream closes its own descriptor
    s->kept = own < 0 ? NULL : fdopen(own, "a");
    if (!s->kept) {
        if (own >= 0) close(own);
        if (s->fd >= 0) rlhf__alternate_close();
        free(s->title);
        free(s);
        return NULL;
    }
    s->log = log;
    if (log && isatty(fileno(log->out))) { // safe: the caller holds the log's lock
        s->log_out = log->out;
        log->out = s->kept;
    }
    return s;
}

void rlhf__full_screen_close(struct rlhf__full_screen *s) {
    if (!s) return;
    if (s->log_out) s->log->out = s->log_out;
    fclose(s->kept);
    rlhf__alternate_close();
    rlhf__series_set_finish(&s->series);
    rlhf__buf_finish(&s->samples);
    rlhf__buf_finish(&s->said);
    free(s->title);
    free(s);
}

FILE *rlhf__full_screen_out(const struct rlhf__full_screen *s) { return s->kept; }

// ---- the numbers ----

enum more { PLAIN, BEST, PER_TOKEN, ENTROPY, LENGTH, STEPS };

// The rows with a curve. A row is shown if the run has its metric.
static const struct {
    const char *label, *metric;
    enum more more;
} rows[] = {
    {"reward", RLHF__REWARD_METRIC, BEST},
    {"loss", "objective/loss", PLAIN},
    {"right", "objective/verifiable_correct_rate", PLAIN},
    {"judge", "judge/mean", PLAIN},
    {"kl", "objective/kl", PER_TOKEN},
    {"entropy", RLHF__ENTROPY_METRIC, ENTROPY},
    {"length", "completions/mean_length", LENGTH},
    {"grad norm", "optim/grad_norm", STEPS},
};

// Metrics that are shown only as numbers.
static const char *const others[] = {"objective/kl_per_token",
                                     "completions/clipped_ratio",
                                     "optim/skipped_steps",
                                     "time/training",
                                     "time/rollout",
                                     "time/reward",
                                     "time/reference",
                                     "time/update",
                                     "perf/rollout_tokens_per_s",
                                     "perf/train_tokens_per_s",
                                     "perf/peak_rss_mb"};

static double last(const struct rlhf__full_screen *s, const char *metric) {
    const struct rlhf__series *v = rlhf__series_of(&s->series, metric);
    return v->n ? v->value[v->n - 1] : NAN;
}

static void take(struct rlhf__full_screen *s, int64_t phase, const struct rlhf__metrics *m,
                 const char *name) {
    struct rlhf__error err;
    double v;
    // If memory runs out, the number is missing on the screen.
    if (rlhf__metrics_get(m, name, &v)) rlhf__series_set_put(&s->series, name, phase, v, &err);
}

void rlhf__full_screen_phase(struct rlhf__full_screen *s, int64_t phase,
                             const struct rlhf__metrics *m) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        take(s, phase, m, rows[i].metric);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        take(s, phase, m, others[i]);
}

void rlhf__full_screen_samples(struct rlhf__full_screen *s, const struct rlhf__sample_table *t,
                               const struct rlhf__sample *samples, size_t n) {
    struct rlhf__sample_table plain = *t;
    plain.boxed = 0;
    plain.width = s->columns > 2 ? s->columns - 2 : RLHF__FULL_COLUMNS - 2;
    rlhf__buf_clear(&s->samples);
    rlhf__samples_put(&s->samples, &plain, samples, n);
}

// ---- lines ----

// Draw one line, cut to the width of the screen, and clear the rest of the screen's line. Control
// characters become spaces.
static void put_line(struct rlhf__buf *out, rlhf_str text, int columns, const char *color) {
    rlhf__buf_puts(out, color);
    rlhf__put_clipped(out, text, columns - 1);
    rlhf__buf_printf(out, "%s\033[K\r\n", *color ? "\033[0m" : "");
}

static void put_curve(struct rlhf__buf *out, const struct rlhf__series *v) {
    int same = 1;
    for (int64_t i = 1; i < v->n; i++)
        same &= v->value[i] == v->value[0];
    const int n = v->n < CURVE_COLUMNS ? (int)v->n : CURVE_COLUMNS;
    if (same || n < 2)
        for (int i = 0; i < n; i++)
            rlhf__buf_puts(out, "\xe2\x94\x80");
    else
        rlhf__put_sparkline(out, v, CURVE_COLUMNS);
    rlhf__buf_printf(out, "%*s", CURVE_COLUMNS - n, "");
}

static void put_more(const struct rlhf__full_screen *s, enum more more,
                     const struct rlhf__series *v, struct rlhf__buf *out) {
    const double each = last(s, "objective/kl_per_token"),
                 cut = last(s, "completions/clipped_ratio"), left = last(s, "optim/skipped_steps");
    char a[40], b[40];
    int64_t best = 0;
    for (int64_t i = 1; i < v->n; i++)
        if (v->value[i] > v->value[best]) best = i;
    rlhf__figure(v->value[0], a);
    if (more == BEST && v->n > 1)
        rlhf__buf_printf(out, "from %s, best %s in phase %lld", a, rlhf__figure(v->value[best], b),
                         (long long)v->phase[best]);
    if (more == PLAIN && v->n > 1) rlhf__buf_printf(out, "from %s", a);
    if (more == ENTROPY)
        rlhf__buf_printf(out, "per token%s%s", v->n > 1 ? ", from " : "", v->n > 1 ? a : "");
    if (more == PER_TOKEN && isfinite(each))
        rlhf__buf_printf(out, "%s per token", rlhf__figure(each, b));
    if (more == LENGTH && isfinite(cut)) rlhf__buf_printf(out, "%.0f %% cut off", 100 * cut);
    if (more == STEPS && left > 0)
        rlhf__buf_printf(out, "%.0f step%s skipped", left, left == 1 ? "" : "s");
    if (more == STEPS && left == 0) rlhf__buf_puts(out, "no step skipped");
}

static int put_curves(const struct rlhf__full_screen *s, struct rlhf__buf *out) {
    int lines = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct rlhf__series *v = rlhf__series_of(&s->series, rows[i].metric);
        struct rlhf__buf line = RLHF__BUF_INIT;
        char number[40];
        // The loss is shown only for runs without rewards.
        if (v->n == 0) continue;
        if (strcmp(rows[i].label, "loss") == 0 && isfinite(last(s, RLHF__REWARD_METRIC))) continue;
        rlhf__buf_printf(&line, " %-10s %-10s", rows[i].label,
                         rlhf__figure(v->value[v->n - 1], number));
        put_curve(&line, v);
        rlhf__buf_puts(&line, "     ");
        put_more(s, rows[i].more, v, &line);
        put_line(out, (rlhf_str){rlhf__buf_text(&line), line.len}, s->columns, "");
        rlhf__buf_finish(&line);
        lines++;
    }
    return lines;
}

// Write "time  3.4 s  rollout ██ 12 %  ...". A bar of 16 columns stands for the whole time.
static void put_times(const struct rlhf__full_screen *s, struct rlhf__buf *out) {
    static const char *const parts[] = {"rollout", "reward", "reference", "update"};
    const double all = last(s, "time/training");
    struct rlhf__buf line = RLHF__BUF_INIT;
    if (!(all > 0)) return;
    char seconds[40];
    snprintf(seconds, sizeof seconds, "%.1f s", all);
    rlhf__buf_printf(&line, " %-10s %-10s", "time", seconds);
    for (size_t i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "time/%s", parts[i]);
        const double share = last(s, name) / all;
        if (!(share > 0)) continue;
        rlhf__buf_printf(&line, "%s ", parts[i]);
        for (int k = 0; k < (int)lround(share * 16); k++)
            rlhf__buf_puts(&line, "\xe2\x96\x88");
        rlhf__buf_printf(&line, " %.0f %%   ", 100 * share);
    }
    put_line(out, (rlhf_str){rlhf__buf_text(&line), line.len}, s->columns, "");
    rlhf__buf_finish(&line);
}

static void put_speed(const struct rlhf__full_screen *s, struct rlhf__buf *out) {
    const double sampled = last(s, "perf/rollout_tokens_per_s"),
                 trained = last(s, "perf/train_tokens_per_s"), mib = last(s, "perf/peak_rss_mb");
    struct rlhf__buf line = RLHF__BUF_INIT;
    rlhf__buf_printf(&line, " %-10s ", "speed");
    if (isfinite(sampled)) rlhf__buf_printf(&line, "%.0f tok/s sampled   ", sampled);
    if (isfinite(trained)) rlhf__buf_printf(&line, "%.0f tok/s trained   ", trained);
    if (isfinite(mib)) rlhf__buf_printf(&line, "%.0f MiB", mib);
    put_line(out, (rlhf_str){rlhf__buf_text(&line), line.len}, s->columns, "");
    rlhf__buf_finish(&line);
}

static int put_samples(const struct rlhf__full_screen *s, int room, struct rlhf__buf *out) {
    const char *at = rlhf__buf_text(&s->samples);
    int lines = 0;
    while (lines < room && *at) {
        const size_t n = strcspn(at, "\n");
        struct rlhf__buf line = RLHF__BUF_INIT;
        rlhf__buf_putc(&line, ' ');
        rlhf__buf_put(&line, at, n);
        put_line(out, (rlhf_str){rlhf__buf_text(&line), line.len}, s->columns, "");
        rlhf__buf_finish(&line);
        at += n + (at[n] == '\n');
        lines++;
    }
    return lines;
}

// Find the newest log line in the kept output. Skips lines that begin with a space or a box-drawing
// character, because they belong to tables.
static void find_said(struct rlhf__full_screen *s) {
    char text[SAID_BYTES];
    fflush(s->kept);
    const off_t end = lseek(s->fd, 0, SEEK_END), from = end > SAID_BYTES ? end - SAID_BYTES : 0;
    const ssize_t n = end > 0 ? pread(s->fd, text, (size_t)(end - from), from) : 0;
    for (size_t len = n > 0 ? (size_t)n : 0, at; len > 0; len = at) {
        while (len > 0 && text[len - 1] == '\n')
            len--;
        for (at = len; at > 0 && text[at - 1] != '\n'; at--)
            ;
        if (at == 0 && from > 0) return; // the beginning of the line was not read
        if (at == len || text[at] < '!' || text[at] > '~') continue;
        rlhf__buf_clear(&s->said);
        rlhf__buf_put(&s->said, text + at, len - at);
        return;
    }
}

// Write the title, and "phase 17/30" at the right end.
static void put_title(const struct rlhf__full_screen *s, const struct rlhf__full_now *now,
                      struct rlhf__buf *out) {
    char right[64];
    const int n = snprintf(right, sizeof right, "phase %lld/%lld", (long long)now->phase,
                           (long long)now->phases);
    rlhf__buf_putc(out, ' ');
    const int used =
        rlhf__put_clipped(out, (rlhf_str){s->title, strlen(s->title)}, s->columns - n - 5);
    rlhf__buf_printf(out, "%*s%s\033[K\r\n", s->columns - n - used - 2, "", right);
}

// Write the bar and the remaining time.
static void put_bar(const struct rlhf__full_screen *s, const struct rlhf__full_now *now,
                    struct rlhf__buf *out) {
    char right[64] = "";
    if (*now->eta) snprintf(right, sizeof right, "   ETA %.20s", now->eta);
    const int width = s->columns - 2 - (int)strlen(right);
    const int full = now->phases > 0 ? (int)((double)now->phase / (double)now->phases * width) : 0;
    rlhf__buf_printf(out, " %s", now->color ? "\033[32m" : "");
    for (int i = 0; i < width; i++) {
        if (i == full && now->color) rlhf__buf_puts(out, "\033[0m\033[2m");
        rlhf__buf_puts(out, i < full ? "\xe2\x94\x81" : "\xe2\x94\x80");
    }
    rlhf__buf_printf(out, "%s%s\033[K\r\n", now->color ? "\033[0m" : "", right);
}

void rlhf__full_screen_draw(struct rlhf__full_screen *s, const struct rlhf__full_now *now) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    const rlhf_str blank = {"", 0};
    size_of(&s->rows, &s->columns);
    if (s->columns < 40 || s->rows < 12) return; // the window was made smaller
    rlhf__buf_puts(&out, "\033[H");
    put_title(s, now, &out);
    put_bar(s, now, &out);
    put_line(&out, blank, s->columns, "");
    int used = 3 + put_curves(s, &out);
    put_line(&out, blank, s->columns, "");
    put_times(s, &out);
    put_speed(s, &out);
    put_line(&out, blank, s->columns, "");
    used += 4;
    used += put_samples(s, s->rows - used - 3, &out);
    rlhf__buf_puts(&out, "\033[J");
    for (; used < s->rows - 2; used++)
        rlhf__buf_puts(&out, "\r\n");
    struct rlhf__buf note = RLHF__BUF_INIT;
    rlhf__buf_printf(&note, " %s", now->note);
    put_line(&out, (rlhf_str){rlhf__buf_text(&note), note.len}, s->columns,
             now->color ? "\033[2m" : "");
    find_said(s);
    rlhf__buf_putc(&out, ' ');
    rlhf__put_clipped(&out, (rlhf_str){rlhf__buf_text(&s->said), s->said.len}, s->columns - 2);
    rlhf__buf_puts(&out, "\033[K");
    fwrite(rlhf__buf_text(&out), 1, out.len, stdout);
    fflush(stdout);
    rlhf__buf_finish(&note);
    rlhf__buf_finish(&out);
}
