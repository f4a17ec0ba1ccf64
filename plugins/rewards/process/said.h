// said.h: what a program says on its standard error: its end, for messages; lines, for the log.
#ifndef RLHF_PLUGINS_PROCESS_SAID_H
#define RLHF_PLUGINS_PROCESS_SAID_H

#include <rlhf/host.h>

enum { RLHF__SAID_TAIL = 2048, RLHF__SAID_SHOWN = 5 };

struct rlhf__said {
    size_t n;                   // bytes of tail
    size_t line;                // where in tail the line that is not at its end begins
    const char *shown_as;       // name before the shown lines; NULL: none are shown
    uint32_t shown, hidden;     // lines since rlhf__said_show
    char tail[RLHF__SAID_TAIL]; // the last that it said
};

void rlhf__said_forget(struct rlhf__said *); // [any]

// From now on the next RLHF__SAID_SHOWN lines go to the host's log as "name: line", at the info
// level. When lines before this call were not shown, the log says how many. name is borrowed; NULL
// ends it. [step]
void rlhf__said_show(struct rlhf__said *, const rlhf_host *, const char *name);

// Read some of the output from fd, which does not block (-1: nothing); whole lines go to the
// host's log, at the debug level if they are not shown. Returns 0 at the end of the file, else 1.
// [step]
int rlhf__said_read(struct rlhf__said *, const rlhf_host *, int fd);
// The same for all that was printed before this call: as much as the pipe can hold. [step]
int rlhf__said_drain(struct rlhf__said *, const rlhf_host *, int fd);

// "" or "; it said: " with its last lines, quoted, into out[cap]. Returns out. [any]
const char *rlhf__said_last(const struct rlhf__said *, char *out, size_t cap);

#endif
