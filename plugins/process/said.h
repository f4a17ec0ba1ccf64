// said.h: a program's output on standard error. All lines go to the log. The end of the output is
// also kept for messages.
#ifndef RLHF_PLUGINS_PROCESS_SAID_H
#define RLHF_PLUGINS_PROCESS_SAID_H

#include <rlhf/host.h>

enum { RLHF__SAID_TAIL = 2048, RLHF__SAID_SHOWN = 5 };

struct rlhf__program_said {
    size_t n;                   // bytes in tail
    size_t line;                // position in `tail` at which the unfinished last line begins
    const char *shown_as;       // name to print before shown lines; NULL: lines are not shown
    uint32_t shown, hidden;     // numbers of lines since rlhf__said_show
    char tail[RLHF__SAID_TAIL]; // the end of its output
};

void rlhf__said_forget(struct rlhf__program_said *); // [any]

// From now on, the first RLHF__SAID_SHOWN lines are shown, that is, logged as "name: line" at the
// info level. If `name` is NULL, no lines are shown. `name` is borrowed. If the limit of the
// previous call hid lines, first logs their number. [step]
void rlhf__said_show(struct rlhf__program_said *, const rlhf_host *, const char *name);

// Reads some output from `fd`, which must not block (-1: there is nothing to read). Complete lines
// go to the host's log, at the debug level if they are not shown. Returns 0 at the end of the
// output, otherwise 1. [step]
int rlhf__said_read(struct rlhf__program_said *, const rlhf_host *, int fd);
// Like rlhf__said_read, but reads everything that was printed before this call and is still in the
// pipe. [step]
int rlhf__said_drain(struct rlhf__program_said *, const rlhf_host *, int fd);

// Writes "; it said: " and the last lines of the output, in quotes, to out[cap]. Without output,
// writes "". Returns out. [any]
const char *rlhf__said_last(const struct rlhf__program_said *, char *out, size_t cap);

#endif
