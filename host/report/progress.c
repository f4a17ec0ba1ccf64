// progress.c: see progress.h.
#include "report/progress.h"

#include "base/clock.h"
#include "base/decimal.h"
#include "base/json.h"
#include "base/printable.h"
#include "report/full_screen.h"

#include <math.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BAR_COLUMNS    24  // only if the terminal also has room for all numbers
#define NOTE_COLUMNS   20  // enough for most notes
#define REDRAW_SECONDS 0.1 // between two redraws for the same work

struct rlhf__progress {
    struct rlhf__log *log;
    int32_t kind; // BAR, PLAIN or OFF
    int32_t color;
    int32_t drawn;                    // columns of the bar on the screen, 0: not shown
    int32_t hidden;                   // 1: do not show the bar
    int32_t day;                      // day of the last line that showed a date
    int32_t counted;                  // 1: `note` has "done/of"
    int32_t fills;                    // 1: rlhf__progress_fill may take the whole terminal
    struct rlhf__full_screen *screen; // NULL: not shown
    struct rlhf__progress_state state;
    struct rlhf__watch watch;
    double last;    // time when the bar was last drawn, seconds
    char doing[48]; // subject of the note
    char note[80];
};

// Move to the first column and clear the line. If the terminal has become narrower, the bar now
// fills several lines, and the cursor is on the last of them.
static void clear_line(const struct rlhf__progress *p) {
    int columns = rlhf__terminal_width(STDOUT_FILENO, 80), above = 0;
    if (p->drawn > columns && columns > 0) above = (p->drawn - 1) / columns;
    if (above)
        printf("\r\033[%dA\033[J", above);
    else
        fputs("\r\033[K", stdout);
}

static void erase(struct rlhf__progress *p) {
    if (!p->drawn) return;
    clear_line(p);
    fflush(stdout);
    p->drawn = 0;
}

static void put_duration(struct rlhf__buf *b, double seconds) {
    if (!(seconds >= 0) || seconds > 1e7) {
        rlhf__buf_puts(b, "-");
        return;
    }
    long s = lround(seconds);
    if (s >= 3600)
        rlhf__buf_printf(b, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        rlhf__buf_printf(b, "%ld:%02ld", s / 60, s % 60);
}

static double seconds_left(const struct rlhf__progress_state *s) {
    int64_t done = s->phase - s->first_phase;
    return done > 0 ? s->seconds / (double)done * (double)(s->phases - s->phase) : NAN;
}

// Items that are left out on a narrow terminal, in this order.
enum shed {
    NOTHING,
    REPEATED,
    SPEED,
    RETRIES,
    PARTS,
    ACCURACY,
    JUDGE,
    KL,
    BAR,
    FAILURES,
    VALUE,
    N_SHED
};

// Write " (fmt 0.391, correct 0.000)".
static void put_parts(struct rlhf__buf *b, const struct rlhf__progress_state *s) {
    for (int32_t i = 0; i < s->n_parts; i++)
        rlhf__buf_printf(b, "%s%s %.4f", i ? ", " : " (", s->part[i].name, s->part[i].value);
    if (s->n_parts) rlhf__buf_putc(b, ')');
}

// Write "reward 0.731  kl 3.21  5210 tok/s", without the items that are left out.
static void put_numbers(struct rlhf__buf *b, const struct rlhf__progress_state *s, int shed) {
    if (s->phase <= s->first_phase) return; // not measured yet
    const int repeats = s->accuracy == s->value && shed >= REPEATED;
    if (shed < VALUE) rlhf__buf_printf(b, "  %s %.4f", s->label ? s->label : "value", s->value);
    if (shed < PARTS) put_parts(b, s);
    if (isfinite(s->judge) && shed < JUDGE) rlhf__buf_printf(b, "  judge %.4f", s->judge);
    if (isfinite(s->accuracy) && shed < ACCURACY && !repeats)
        rlhf__buf_printf(b, "  accuracy %.4f", s->accuracy);
    if (!isnan(s->kl) && shed < KL) rlhf__buf_printf(b, "  kl %.3f", s->kl);
    if (isfinite(s->tokens_per_s) && shed < SPEED)
        rlhf__buf_printf(b, "  %.0f tok/s", s->tokens_per_s);
    if (s->failures && shed < FAILURES)
        rlhf__buf_printf(b, "  failures %lld", (long long)s->failures);
    if (s->retries && shed < RETRIES) rlhf__buf_printf(b, "  retries %lld", (long long)s->retries);
}

// On a narrow terminal the bar is short, because the numbers are more useful there.
static int bar_columns(int terminal) { return terminal >= 100 ? BAR_COLUMNS : terminal / 8; }

// Returns the number of columns that are reserved for the note. This number is the same for all
// short notes, so that numbers do not come and go. After the last phase, it is only the note's
// width.
static int note_columns(const struct rlhf__progress *p, int terminal) {
    struct rlhf__buf seen = RLHF__BUF_INIT;
    const int used = rlhf__put_clipped(&seen, (rlhf_str){p->note, strlen(p->note)}, terminal);
    const int usual = terminal / 4 < NOTE_COLUMNS ? terminal / 4 : NOTE_COLUMNS;
    rlhf__buf_finish(&seen);
    if (p->state.phase >= p->state.phases) return *p->note ? 2 + used : 0;
    return 2 + (used > usual ? used : usual);
}

// Write the remaining time, and as many of the numbers as fit next to the bar and the note. Returns
// the width of the bar.
static int put_fitting(const struct rlhf__progress *p, int terminal, struct rlhf__buf *text) {
    const struct rlhf__progress_state *s = &p->state;
    const int room = terminal - 1 - note_columns(p, terminal);
    for (int shed = NOTHING; shed < N_SHED; shed++) {
        const int width = shed < BAR ? bar_columns(terminal) : 0;
        rlhf__buf_clear(text);
        rlhf__buf_printf(text, " %lld/%lld", (long long)s->phase, (long long)s->phases);
        put_numbers(text, s, shed);
        if (s->phase > s->first_phase && s->phase < s->phases) {
            rlhf__buf_puts(text, "  ETA ");
            put_duration(text, seconds_left(s));
        }
        // The text is ASCII, so its bytes are its columns.
        if (width + (int)text->len <= room || shed == VALUE) return width;
    }
    return 0;
}

// Write the bar and the numbers. Before the first phase, write only the note.
static int put_bar(const struct rlhf__progress *p, int terminal, struct rlhf__buf *bar,
                   struct rlhf__buf *text) {
    const struct rlhf__progress_state *s = &p->state;
    const char *gap = s->phases > 0 ? "  " : "";
    int width = s->phases > 0 ? put_fitting(p, terminal, text) : 0;
    int full = width ? (int)((double)s->phase / (double)s->phases * width) : 0;
    if (full > width) full = width;
    for (int i = 0; i < width; i++) {
        if (i == full && p->color) rlhf__buf_puts(bar, "\033[2m");
        rlhf__buf_puts(bar, i < full ? "\xe2\x94\x81" : p->color ? "\xe2\x94\x81" : " ");
    }
    if (*p->note) rlhf__buf_printf(text, "%s%s", gap, p->note);
    return width;
}

static void draw_screen(struct rlhf__progress *p) {
    const struct rlhf__progress_state *s = &p->state;
    struct rlhf__buf eta = RLHF__BUF_INIT;
    if (s->phase > s->first_phase && s->phase < s->phases) put_duration(&eta, seconds_left(s));
    const struct rlhf__full_now now = {.phase = s->phase,
                                       .phases = s->phases,
                                       .eta = rlhf__buf_text(&eta),
                                       .note = p->note,
                                       .color = p->color};
    rlhf__full_screen_draw(p->screen, &now);
    p->last = rlhf__seconds();
    rlhf__buf_finish(&eta);
}

static void draw(struct rlhf__progress *p) {
    if (p->screen) {
        draw_screen(p);
        return;
    }
    if (p->kind != RLHF__PROGRESS_BAR || p->hidden || (p->state.phases <= 0 && !*p->note)) return;
    struct rlhf__buf bar = RLHF__BUF_INIT, text = RLHF__BUF_INIT, line = RLHF__BUF_INIT;
    const int terminal = rlhf__terminal_width(STDOUT_FILENO, 80);
    int width = put_bar(p, terminal, &bar, &text), columns = terminal - width - 1;
    int used = rlhf__put_clipped(&line, (rlhf_str){rlhf__buf_text(&text), text.len},
                                 columns > 0 ? columns : 0);
    clear_line(p);
    printf("%s%s%s%s", p->color ? "\033[32m" : "", rlhf__buf_text(&bar), p->color ? "\033[0m" : "",
           rlhf__buf_text(&line));
    fflush(stdout);
    p->drawn = width + used > 0 ? width + used : 1;
    p->last = rlhf__seconds();
    rlhf__buf_finish(&bar);
    rlhf__buf_finish(&text);
    rlhf__buf_finish(&line);
}

static void before_log(void *arg) { erase(arg); }
static void after_log(void *arg) { draw(arg); }

// Call f while log output is blocked.
static void alone(struct rlhf__progress *p, void (*f)(struct rlhf__progress *)) {
    if (p->log) pthread_mutex_lock(&p->log->lock);
    f(p);
    if (p->log) pthread_mutex_unlock(&p->log->lock);
}

static void seen(void *arg, const char *what, int64_t done, int64_t of) {
    rlhf__progress_step(arg, what, done, of);
}

rlhf_status rlhf__progress_open(int32_t kind, struct rlhf__log *log, struct rlhf__progress **out,
                                struct rlhf__error *err) {
    struct rlhf__progress *p = calloc(1, sizeof *p);
    char today[32];
    *out = p;
    if (!p) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    int tty = isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
    p->fills = kind == RLHF__PROGRESS_FULL && tty && !(log && log->json);
    // The whole terminal is used from the first phase onward.
    if (kind == RLHF__PROGRESS_FULL) kind = RLHF__PROGRESS_AUTO;
    if (kind == RLHF__PROGRESS_AUTO) kind = tty ? RLHF__PROGRESS_BAR : RLHF__PROGRESS_PLAIN;
    if (log && log->json && kind == RLHF__PROGRESS_BAR) kind = RLHF__PROGRESS_PLAIN;
    p->kind = kind;
    p->log = log;
    p->color = tty && !(no_color && *no_color);
    p->watch = (struct rlhf__watch){kind == RLHF__PROGRESS_BAR ? seen : NULL, p};
    rlhf__clock_text(&p->day, today); // later lines show the date only if it has changed
    if (kind == RLHF__PROGRESS_BAR) rlhf__log_hooks(log, before_log, after_log, p);
    return RLHF_OK;
}

static void close_screen(struct rlhf__progress *p) {
    rlhf__full_screen_close(p->screen);
    p->screen = NULL;
}

static void end_line(struct rlhf__progress *p) {
    if (p->screen) {
        close_screen(p);
        draw(p); // the bar stays
    }
    p->hidden = 1;
    if (!p->drawn) return;
    if (p->state.phases > 0)
        putchar('\n');
    else
        clear_line(p); // only a note was shown
    fflush(stdout);
    p->drawn = 0;
}

void rlhf__progress_end(struct rlhf__progress *p) { alone(p, end_line); }

// Progress is not a result, so a run does not fail if its progress could not be written.
static void drop_unshown(void) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return;
    __fpurge(stdout);
    clearerr(stdout);
}

void rlhf__progress_close(struct rlhf__progress *p) {
    if (!p) return;
    if (p->kind == RLHF__PROGRESS_BAR) rlhf__log_hooks(p->log, NULL, NULL, NULL);
    rlhf__progress_end(p);
    drop_unshown();
    free(p);
}

// ---- lines ----

static void print_line(struct rlhf__progress *p, const struct rlhf__progress_state *s) {
    struct rlhf__buf text = RLHF__BUF_INIT, line = RLHF__BUF_INIT;
    char when[32];
    rlhf__buf_printf(&text, "%s %s %lld/%lld", rlhf__clock_text(&p->day, when),
                     s->unit ? s->unit : "phase", (long long)s->phase, (long long)s->phases);
    put_numbers(&text, s, NOTHING);
    rlhf__buf_puts(&text, "  elapsed ");
    put_duration(&text, s->seconds);
    if (s->phase < s->phases) {
        rlhf__buf_puts(&text, "  ETA ");
        put_duration(&text, seconds_left(s));
    }
    if (p->kind == RLHF__PROGRESS_BAR)
        rlhf__put_wrapped(&line, (rlhf_str){rlhf__buf_text(&text), text.len},
                          rlhf__terminal_width(STDOUT_FILENO, 80), 0, 4);
    printf("%s\n", rlhf__buf_text(p->kind == RLHF__PROGRESS_BAR ? &line : &text));
    fflush(stdout);
    rlhf__buf_finish(&text);
    rlhf__buf_finish(&line);
}

static void put_member(struct rlhf__buf *b, const char *name, double v) {
    char number[40];
    if (isfinite(v)) rlhf__buf_printf(b, ", \"%s\": %s", name, rlhf__format_double(v, 0, number));
}

static void print_object(const struct rlhf__progress *p, const struct rlhf__progress_state *s) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    char number[40];
    rlhf__buf_printf(&b, "\"phase\": %lld, \"phases\": %lld", (long long)s->phase,
                     (long long)s->phases);
    put_member(&b, s->label ? s->label : "value", s->value);
    for (int32_t i = 0; i < s->n_parts; i++) {
        rlhf__buf_puts(&b, i ? ", " : ", \"parts\": {");
        rlhf__json_write_string(&b, s->part[i].name, strlen(s->part[i].name));
        rlhf__buf_printf(&b, ": %s", rlhf__format_double(s->part[i].value, 0, number));
    }
    if (s->n_parts) rlhf__buf_putc(&b, '}');
    put_member(&b, "judge", s->judge);
    put_member(&b, "accuracy", s->accuracy);
    put_member(&b, "kl", s->kl);
    put_member(&b, "tokens_per_s", s->tokens_per_s);
    if (s->failures) put_member(&b, "failures", (double)s->failures);
    if (s->retries) put_member(&b, "retries", (double)s->retries);
    put_member(&b, "elapsed_s", s->seconds);
    if (s->phase < s->phases) put_member(&b, "eta_s", seconds_left(s));
    if (!b.bad) rlhf__log_event(p->log, "phase", rlhf__buf_text(&b));
    rlhf__buf_finish(&b);
}

// After the last phase the bar itself stays.
static void draw_phase(struct rlhf__progress *p) {
    const struct rlhf__progress_state *s = &p->state;
    if (s->history && !p->screen && !p->hidden && s->phase > s->first_phase &&
        s->phase < s->phases) {
        erase(p);
        print_line(p, s);
    }
    draw(p);
}

void rlhf__progress_fill(struct rlhf__progress *p, const char *title) {
    if (!p->fills || p->screen || !rlhf__full_screen_fits()) return;
    alone(p, erase);
    if (p->log) pthread_mutex_lock(&p->log->lock);
    p->screen = rlhf__full_screen_open(p->log, title);
    if (p->log) pthread_mutex_unlock(&p->log->lock);
}

struct rlhf__full_screen *rlhf__progress_screen(const struct rlhf__progress *p) {
    return p->screen;
}

void rlhf__progress_phase(struct rlhf__progress *p, const struct rlhf__progress_state *s) {
    p->state = *s;
    p->note[0] = '\0';
    p->doing[0] = '\0';
    if (p->kind == RLHF__PROGRESS_BAR) alone(p, draw_phase);
    if (p->kind != RLHF__PROGRESS_PLAIN || s->phase <= s->first_phase) return;
    if (p->log && p->log->json)
        print_object(p, s);
    else
        print_line(p, s);
}

// ---- between phases ----

void rlhf__progress_step(struct rlhf__progress *p, const char *what, int64_t done, int64_t of) {
    if (!p || p->kind != RLHF__PROGRESS_BAR) return;
    int news = strncmp(p->doing, what, sizeof p->doing - 1) != 0 || (of > 0) != p->counted;
    if ((!news || p->screen) && rlhf__seconds() - p->last < REDRAW_SECONDS) return;
    if (of > 0)
        snprintf(p->note, sizeof p->note, "%.40s %lld/%lld", what, (long long)done, (long long)of);
    else if (done > 0)
        snprintf(p->note, sizeof p->note, "%.40s %lld", what, (long long)done);
    else
        snprintf(p->note, sizeof p->note, "%s", what);
    snprintf(p->doing, sizeof p->doing, "%s", what);
    p->counted = of > 0;
    alone(p, draw);
}

void rlhf__progress_note(struct rlhf__progress *p, const char *what) {
    rlhf__progress_step(p, what, 0, 0);
}

const struct rlhf__watch *rlhf__progress_watch(const struct rlhf__progress *p) { return &p->watch; }

void rlhf__progress_hide(struct rlhf__progress *p) {
    p->hidden = 1;
    alone(p, erase);
}

void rlhf__progress_show(struct rlhf__progress *p) {
    p->hidden = 0;
    alone(p, draw);
}
