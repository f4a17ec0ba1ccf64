// e2e.h: runs the built program in a scratch directory: a tiny random model written to disk, the
// command line, and the files that the program leaves.
//
// A failed step is a failed CMocka assertion, so call every function here from the test's own
// thread.
#ifndef E2E_H
#define E2E_H

#include "support/check.h"

#include <jansson.h>

struct e2e {
    char dir[256];     // scratch directory, removed by e2e_teardown
    char out[1 << 20]; // stdout and stderr of the last run, NUL-ended
};

// Setup and teardown for cmocka; *state = struct e2e. Setup fills dir with model/, texts.jsonl,
// labeled.jsonl and prompts.txt. model/ is a GPT-2 with 2 layers of width 32 and 64 positions. It
// has config.json, vocab.json and merges.txt, but no weights. Teardown removes everything, unless
// RLHF_E2E_KEEP=1.
int e2e_setup(void **state);
int e2e_teardown(void **state);

// The program sees none of the machine's NVIDIA cards, so runs use the CPU unless the test has an
// emulated GPU (cuda.h).

// Run `rlhf-host <args>` in `dir`, with one thread unless `args` sets another number. Returns the
// exit status, or 128 + n for signal n. The output goes to t->out.
__attribute__((format(printf, 2, 3))) int e2e_run(struct e2e *t, const char *args, ...);

// As e2e_run, but runs a script through `sh -c`, with the program's path in $HOST.
__attribute__((format(printf, 2, 3))) int e2e_shell(struct e2e *t, const char *script, ...);

// As e2e_shell, but the output goes to a terminal of `columns` columns (TERM xterm, NO_COLOR set).
// t->out receives the bytes that the terminal gets, so its lines end in CR LF.
__attribute__((format(printf, 3, 4))) int e2e_terminal(struct e2e *t, unsigned short columns,
                                                       const char *script, ...);

// Imitates a person at the keyboard: waits until the output since the previous keys contains
// `until`, then sends the keys `send`.
struct e2e_keys {
    const char *until, *send;
};

// As e2e_terminal, but the terminal also has a number of rows, and a person types keys[0 .. n_keys
// - 1] in this order. Fails the test if the program ends, or is silent for a minute, before all
// keys were sent.
__attribute__((format(printf, 6, 7))) int e2e_typed(struct e2e *t, unsigned short rows,
                                                    unsigned short columns,
                                                    const struct e2e_keys *keys, size_t n_keys,
                                                    const char *script, ...);

// Assert that the last output contains `text`. _count: returns how often it does.
void e2e_says(const struct e2e *t, const char *text);
int e2e_count(const struct e2e *t, const char *text);

// Returns the rows of a JSON Lines file below `dir`: a new reference, never NULL.
json_t *e2e_lines(const struct e2e *t, const char *name);

// Returns the rows of <run>/metrics.jsonl: a new reference, never NULL.
json_t *e2e_metrics(const struct e2e *t, const char *run);

// Metric `name` of row i (negative i count from the end). Fails the test if it is absent.
double e2e_metric(const json_t *rows, int i, const char *name);

// Assert that two directories below `dir` hold the same files with the same bytes.
void e2e_same_tree(struct e2e *t, const char *a, const char *b);

// Write a file below `dir`.
void e2e_write(const struct e2e *t, const char *name, const char *text);

// Returns 1 if the path below `dir` exists.
int e2e_exists(const struct e2e *t, const char *name);

#endif
