// progress.c: see progress.h.
#include "report/progress.h"

#include "report/columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BAR_COLUMNS 24 // on a terminal wide enough for all numbers beside it

struct rlhf__progress {
    struct rlhf__log *log;
    int32_t kind; // BAR, PLAIN or OFF
    int32_t color;
    int32_t drawn;  // 1: the bar is on the screen
    int32_t hidden; // 1: it must stay off
    struct rlhf__progress_state state;
    char note[32];
};

static void erase(struct rlhf__progress *p) {
    if (!p->drawn) return;
    fputs("\r\033[K", stdout);
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

// "reward 0.731  kl 3.21  5210 tok/s"
static void put_numbers(struct rlhf__buf *b, const struct rlhf__progress_state *s) {
    if (s->phase <= s->first_phase) return; // nothing measured yet
    rlhf__buf_printf(b, "  %s %.4f", s->label ? s->label : "value", s->value);
    if (isfinite(s->judge)) rlhf__buf_printf(b, "  judge %.4f", s->judge);
    if (isfinite(s->accuracy)) rlhf__buf_printf(b, "  accuracy %.4f", s->accuracy);
    if (!isnan(s->kl)) rlhf__buf_printf(b, "  kl %.3f", s->kl);
    if (isfinite(s->tokens_per_s)) rlhf__buf_printf(b, "  %.0f tok/s", s->tokens_per_s);
}

// Shorter on a narrow terminal, where the numbers say more than the bar.
static int bar_columns(int terminal) { return terminal >= 100 ? BAR_COLUMNS : terminal / 8; }

static void draw(struct rlhf__progress *p) {
    const struct rlhf__progress_state *s = &p->state;
    if (p->kind != RLHF__PROGRESS_BAR || p->hidden || s->phases <= 0) return;
    struct rlhf__buf bar = RLHF__BUF_INIT, text = RLHF__BUF_INIT;
    double share = (double)s->phase / (double)s->phases;
    const int terminal = rlhf__terminal_width(STDOUT_FILENO, 80), width = bar_columns(terminal);
    int full = (int)(share * width);
    if (full > width) full = width;
    for (int i = 0; i < width; i++) {
        if (i == full && p->color) rlhf__buf_puts(&bar, "\033[2m");
        rlhf__buf_puts(&bar, i < full ? "\xe2\x94\x81" : p->color ? "\xe2\x94\x81" : " ");
    }
    rlhf__buf_printf(&text, " %lld/%lld", (long long)s->phase, (long long)s->phases);
    put_numbers(&text, s);
    if (s->phase > s->first_phase && s->phase < s->phases) {
        rlhf__buf_puts(&text, "  ETA ");
        put_duration(&text, seconds_left(s));
    }
    if (*p->note) rlhf__buf_printf(&text, "  %s", p->note);
    struct rlhf__buf line = RLHF__BUF_INIT;
    int columns = terminal - width - 1;
    rlhf__put_clipped(&line, (rlhf_str){rlhf__buf_text(&text), text.len},
                      columns > 0 ? columns : 0);
    printf("\r\033[K%s%s%s%s", p->color ? "\033[32m" : "", rlhf__buf_text(&bar),
           p->color ? "\033[0m" : "", rlhf__buf_text(&line));
    fflush(stdout);
    p->drawn = 1;
    rlhf__buf_free(&bar);
    rlhf__buf_free(&text);
    rlhf__buf_free(&line);
}

static void before_log(void *arg) { erase(arg); }
static void after_log(void *arg) { draw(arg); }

// Calls f with log lines kept out.
static void alone(struct rlhf__progress *p, void (*f)(struct rlhf__progress *)) {
    if (p->log) pthread_mutex_lock(&p->log->lock);
    f(p);
    if (p->log) pthread_mutex_unlock(&p->log->lock);
}

rlhf_status rlhf__progress_create(int32_t kind, struct rlhf__log *log, struct rlhf__progress **out,
                                  struct rlhf__error *err) {
    struct rlhf__progress *p = calloc(1, sizeof *p);
    *out = p;
    if (!p) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    int tty = isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
    if (kind == RLHF__PROGRESS_AUTO) kind = tty ? RLHF__PROGRESS_BAR : RLHF__PROGRESS_PLAIN;
    p->kind = kind;
    p->log = log;
    p->color = tty && !(no_color && *no_color);
    if (kind == RLHF__PROGRESS_BAR) rlhf__log_hooks(log, before_log, after_log, p);
    return RLHF_OK;
}

void rlhf__progress_destroy(struct rlhf__progress *p) {
    if (!p) return;
    if (p->kind == RLHF__PROGRESS_BAR) rlhf__log_hooks(p->log, NULL, NULL, NULL);
    rlhf__progress_end(p);
    free(p);
}

void rlhf__progress_phase(struct rlhf__progress *p, const struct rlhf__progress_state *s) {
    p->state = *s;
    p->note[0] = '\0';
    if (p->kind == RLHF__PROGRESS_BAR) alone(p, draw);
    if (p->kind != RLHF__PROGRESS_PLAIN || s->phase <= s->first_phase) return;
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__buf_printf(&text, "%s %lld/%lld", s->unit ? s->unit : "phase", (long long)s->phase,
                     (long long)s->phases);
    put_numbers(&text, s);
    rlhf__buf_puts(&text, "  elapsed ");
    put_duration(&text, s->seconds);
    if (s->phase < s->phases) {
        rlhf__buf_puts(&text, "  ETA ");
        put_duration(&text, seconds_left(s));
    }
    printf("%s\n", rlhf__buf_text(&text));
    fflush(stdout);
    rlhf__buf_free(&text);
}

void rlhf__progress_note(struct rlhf__progress *p, const char *what) {
    if (p->kind != RLHF__PROGRESS_BAR) return;
    snprintf(p->note, sizeof p->note, "%s", what ? what : "");
    alone(p, draw);
}

static void end_line(struct rlhf__progress *p) {
    p->hidden = 1;
    if (!p->drawn) return;
    putchar('\n');
    fflush(stdout);
    p->drawn = 0;
}

void rlhf__progress_end(struct rlhf__progress *p) { alone(p, end_line); }

void rlhf__progress_hide(struct rlhf__progress *p) {
    p->hidden = 1;
    alone(p, erase);
}

void rlhf__progress_show(struct rlhf__progress *p) {
    p->hidden = 0;
    alone(p, draw);
}
