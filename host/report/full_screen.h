// full_screen.h: shows a run on the whole terminal (log.progress=full): curves, times, samples and
// the newest log line. The display reads no keys.
//
// While the full screen is shown, log lines and sample tables are not printed. They are kept, and
// printed when the full screen is closed (base/alternate.h).
#ifndef RLHF_HOST_REPORT_FULL_SCREEN_H
#define RLHF_HOST_REPORT_FULL_SCREEN_H

#include "report/metrics.h"
#include "report/samples.h"

struct rlhf__full_screen;

enum { RLHF__FULL_COLUMNS = 100, RLHF__FULL_ROWS = 24 }; // the smallest terminal

// Returns 1 if the terminal on standard output is large enough. [any]
int rlhf__full_screen_fits(void);

// Show the run on the whole terminal. `title` names the run, its plugins and its policy. If the log
// goes to a terminal, log lines are kept from now on. Returns NULL if the display cannot be opened.
// [main]
struct rlhf__full_screen *rlhf__full_screen_open(struct rlhf__log *log, const char *title);

// Close the display, and print what was kept. NULL allowed. [main]
void rlhf__full_screen_close(struct rlhf__full_screen *);

// Returns the stream to print tables of samples to. [main]
FILE *rlhf__full_screen_out(const struct rlhf__full_screen *);

// Show the numbers of a phase, which is counted from 1, and its samples if there are any. Call this
// before rlhf__metrics_flush, which clears the numbers. [main]
void rlhf__full_screen_phase(struct rlhf__full_screen *, int64_t phase,
                             const struct rlhf__metrics *);
void rlhf__full_screen_samples(struct rlhf__full_screen *, const struct rlhf__sample_table *,
                               const struct rlhf__sample *, size_t n);

// The data that changes while a phase runs. Borrowed.
struct rlhf__full_now {
    int64_t phase, phases;
    const char *eta;  // "1:12"; "" = not known
    const char *note; // current work
    int32_t color;
};

// Draw the whole display. The remaining time is never cut off. [main]
void rlhf__full_screen_draw(struct rlhf__full_screen *, const struct rlhf__full_now *);

#endif
