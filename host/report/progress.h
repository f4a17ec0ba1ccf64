// progress.h: shows a run's progress on the terminal: a bar that is redrawn in place, or one plain
// line per phase.
#ifndef RLHF_HOST_REPORT_PROGRESS_H
#define RLHF_HOST_REPORT_PROGRESS_H

#include "base/log.h"
#include "base/watch.h"
#include "config/schema.h"

enum { RLHF__PROGRESS_PARTS = 8 }; // parts of rewards that a line shows

struct rlhf__progress_part {
    char name[64];
    double value;
};

struct rlhf__progress_state {
    int64_t phase, phases; // phases done and planned
    const char *label;     // e.g. "reward"; what `value` is
    double value;          // mean reward (or loss)
    double kl;             // sequence KL, nats; NaN = not shown
    double tokens_per_s;   // NaN = not shown
    double seconds;        // time of this process's phases so far
    int64_t first_phase;   // phases already done when this process started (resume)
    const char *unit;      // what is counted; NULL = "phase"
    double judge;          // mean of the judge; NaN = not shown
    double accuracy;  // accuracy of a supervised run, or share of right answers; NaN = not shown
    int64_t failures; // rows that rewards could not score; shown if not 0
    int64_t retries;  // rows that were scored again; shown if not 0
    int32_t history;  // 1: keep a line of this phase above the bar
    int32_t n_parts;
    struct rlhf__progress_part part[RLHF__PROGRESS_PARTS]; // means of the parts of `value`
};

struct rlhf__progress;
struct rlhf__full_screen; // report/full_screen.h

// Show progress on stdout. `kind` is an enum rlhf__progress_kind; AUTO means a bar if stdout is a
// terminal, otherwise plain lines. Log lines are printed above the bar, through the hooks of `log`.
// With a JSON log, logs each phase as an object instead of drawing a bar. [main]
rlhf_status rlhf__progress_open(int32_t kind, struct rlhf__log *log, struct rlhf__progress **out,
                                struct rlhf__error *err);

// End the display and free p. Errors of writing progress to stdout are ignored. NULL allowed.
void rlhf__progress_close(struct rlhf__progress *p);

// Use the whole terminal from now on, with `title` as its first line. Does nothing if the user did
// not ask for the whole terminal, or if the terminal is too small. [main]
void rlhf__progress_fill(struct rlhf__progress *p, const char *title);

// Returns the display on the whole terminal, or NULL if it is not shown. Give this display the
// numbers and samples of a phase before you call rlhf__progress_phase. [main]
struct rlhf__full_screen *rlhf__progress_screen(const struct rlhf__progress *p);

// Show the state *s of the run. To show the bar for the first time, call this with s->phase =
// s->first_phase before this process has run any phase. [main]
void rlhf__progress_phase(struct rlhf__progress *p, const struct rlhf__progress_state *s);

// Show the current work. `what` is its name (e.g. "rollout" or "loading the policy"), `done` the
// number of finished items, and `of` the total (0 = unknown). This text appears next to the bar.
// Before the first phase, it replaces the bar. The bar is redrawn at once if `what` changes or if
// the total becomes known or unknown, otherwise at most ten times a second. p may be NULL. [main]
void rlhf__progress_step(struct rlhf__progress *p, const char *what, int64_t done, int64_t of);
void rlhf__progress_note(struct rlhf__progress *p, const char *what); // without numbers

// Returns a struct rlhf__watch whose callback passes progress on to rlhf__progress_step. The
// callback does nothing unless a bar is shown. The watch lives as long as p. [any]
const struct rlhf__watch *rlhf__progress_watch(const struct rlhf__progress *p);

// End the display: the bar stays on the screen, and later output appears below it. [main]
void rlhf__progress_end(struct rlhf__progress *p);

// _hide removes the bar before other output on stdout, such as the sample table. _show draws the
// bar again after that output. [main]
void rlhf__progress_hide(struct rlhf__progress *p);
void rlhf__progress_show(struct rlhf__progress *p);

#endif
