// editor.h: reads the lines of a dialogue from the terminal. With libedit, lines can be edited and
// completed, and the arrow keys recall lines of earlier sessions. Without libedit, lines are read
// as the terminal delivers them.
//
// libedit is opened with dlopen when a dialogue begins, so the program also starts without libedit.
#ifndef RLHF_TOOLS_PROMPT_EDITOR_H
#define RLHF_TOOLS_PROMPT_EDITOR_H

#include "prompt/typed_completion.h"

#include <signal.h>

struct rlhf__editor;

struct rlhf__editor_opts {
    struct rlhf__completion_words words;
    const volatile sig_atomic_t *ended; // not 0: a signal ends the program
    volatile sig_atomic_t *interrupted; // set by Ctrl-C; reading a line sets it to 0
};

enum rlhf__editor_event {
    RLHF__LINE = 1,      // a line was read
    RLHF__LINE_LEFT = 2, // Ctrl-C: the line was given up
    RLHF__LINE_END = 3   // Ctrl-D, a closed terminal, or a signal that ends the program
};

// The caller owns *out. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__editor_open(const struct rlhf__editor_opts *, struct rlhf__editor **out,
                              struct rlhf__error *err);

// Saves the history. NULL allowed. [main]
void rlhf__editor_close(struct rlhf__editor *);

// Returns 1 if lines can be edited. [main]
int rlhf__editor_edits(const struct rlhf__editor *);

// Print the prompt and read a line. Returns an enum rlhf__editor_event. With RLHF__LINE, *line is
// the line without its end. It may contain any bytes but NUL, and is borrowed until the next call.
// [main]
int rlhf__editor_line(struct rlhf__editor *, const char **line);

#endif
