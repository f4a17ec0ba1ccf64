// python_calls.h: calls functions of a Python file in a process of their own, which runs the driver
// (see python.c). python.so and grader.so use it.
#ifndef RLHF_PLUGINS_REWARDS_PYTHON_CALLS_H
#define RLHF_PLUGINS_REWARDS_PYTHON_CALLS_H

#include "python_frame.h"

#include <rlhf/reward.h>

// The caller sets the members up to `pointer`, which are borrowed. All other members must be zero.
struct rlhf__python {
    const rlhf_host *host;
    const char *file, *functions, *python; // functions: names with commas between
    const char *pointer; // if the file is JSON: the JSON Pointer of the source; else NULL
    struct rlhf__program program;
    char *argv[8];
    struct rlhf__bytes ready; // text of the driver's first answer
    int32_t noted;            // 1: the driver's note was logged
    int32_t said_unscored;    // 1: a row without a score was reported
    int32_t said_invalid;     // 1: an invalid grade was reported
    int32_t tried;            // 1: the functions have scored made-up responses
    int64_t phase;            // the phase whose printed lines are shown
    char name[256];           // "rewards.py (python3)"
};

// Starts the process, which imports the file. Errors, with a message: RLHF_E_INVALID and others.
// Release with rlhf__python_close, even after a failure. [main]
rlhf_status rlhf__python_open(struct rlhf__python *);
void rlhf__python_close(struct rlhf__python *); // [main]

// Lets the functions score the rows; if the process has ended, starts it again. The frame must have
// {.data = {.host = host}}; its doubles are the rewards of the first function, of the second and so
// on. The caller finishes frame->data, even after a failure. [step]
rlhf_status rlhf__python_score(struct rlhf__python *, const rlhf_reward_in *, struct rlhf__frame *);

// Reports the metrics of a frame, and logs its other lines, each kind of line once. [step]
rlhf_status rlhf__python_report(struct rlhf__python *, const struct rlhf__frame *);

// Lets the functions score two made-up responses to a row, at the first call, so that a function
// that fails on them is refused before models are loaded. A model may respond anything, also
// nothing. [main]
rlhf_status rlhf__python_try(struct rlhf__python *, const rlhf_row_in *);

// Finds the i-th line of this kind in the driver's first answer. Sets *out to the rest of the line.
// Returns 0 if there are fewer such lines. [any]
int rlhf__python_ready_line(const struct rlhf__python *, const char *kind, uint32_t i,
                            rlhf_str *out);

// The name of the file without its directory. [any]
const char *rlhf__python_file(const struct rlhf__python *);

#endif
