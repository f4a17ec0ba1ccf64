// said.h: a program's output on standard error: the tail for messages, the lines for the log.
#ifndef RLHF_PLUGINS_PROCESS_SAID_H
#define RLHF_PLUGINS_PROCESS_SAID_H

#include <rlhf/host.h>

enum { RLHF__SAID_TAIL = 2048, RLHF__SAID_SHOWN = 5 };

struct rlhf__said {
    size_t n;                   // bytes in tail
    size_t line;                // where in tail the incomplete last line begins
    const char *shown_as;       // name before the shown lines; NULL: none are shown
    uint32_t shown, hidden;     // lines since rlhf__said_show
    char tail[RLHF__SAID_TAIL]; // its most recent output
};

void rlhf__said_forget(struct rlhf__said *); // [any]

// Logs the next RLHF__SAID_SHOWN lines as "name: line" at the info level. If lines before this call
// were not shown, the log says how many. name is borrowed; NULL stops showing. [step]
void rlhf__said_show(struct rlhf__said *, const rlhf_host *, const char *name);

// Reads some of the output from fd, which must not block (-1: nothing). Complete lines go to the
// host's log, at the debug level if they are not shown. Returns 0 at the end of the file, otherwise
// 1. [step]
int rlhf__said_read(struct rlhf__said *, const rlhf_host *, int fd);
// rlhf__said_read for everything that was printed before this call, as far as the pipe can hold it.
// [step]
int rlhf__said_drain(struct rlhf__said *, const rlhf_host *, int fd);

// Writes "; it said: " and the last lines of the output, quoted, to out[cap]; "" if there is no
// output. Returns out. [any]
const char *rlhf__said_last(const struct rlhf__said *, char *out, size_t cap);

#endif
