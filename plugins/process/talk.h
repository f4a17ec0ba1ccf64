// talk.h: one exchange with a program. Data is sent and received at the same time, because
// otherwise two full pipes could block both sides.
#ifndef RLHF_PLUGINS_PROCESS_TALK_H
#define RLHF_PLUGINS_PROCESS_TALK_H

#include "process/program.h"

enum rlhf__talk {
    RLHF__TALK_DONE = 0,
    RLHF__TALK_ENDED = 1,     // the program exited
    RLHF__TALK_CLOSED = 2,    // it closed its standard output but is still running
    RLHF__TALK_LATE = 3,      // the time limit, rewards.timeout_s, has passed
    RLHF__TALK_REFUSED = 4,   // `take` refused the answer
    RLHF__TALK_CANCELLED = 5, // the user asked to stop
    RLHF__TALK_FAILED = 6     // a pipe failed; errno is set
};

enum rlhf__taken { RLHF__TAKEN_MORE = 0, RLHF__TAKEN_ALL = 1, RLHF__TAKEN_NONE = 2 };

struct rlhf__exchange {
    const char *send; // [n_send]
    size_t n_send, sent;
    int32_t patient; // 1: Ctrl-C does not shorten the wait
    double start_s;  // additional seconds for its first answer, if it was started for this exchange
    // Receives n >= 1 bytes of the answer. Returns whether the answer is now complete, continues,
    // or is invalid. `take` is also called for bytes after the end of the answer.
    enum rlhf__taken (*take)(void *ctx, const char *bytes, size_t n);
    void *ctx;
};

// Sends and receives until everything is sent and the answer is complete. The program must be
// running. If the result is not DONE, the caller must kill the program; this function does not.
// [step]
enum rlhf__talk rlhf__talk(struct rlhf__program *, struct rlhf__exchange *);

// Reads output that no request asked for, up to cap bytes, without waiting. [step]
size_t rlhf__talk_unasked(struct rlhf__program *, char *to, size_t cap);

// Writes the description of a failure to out[cap] and returns out. A failure is any result except
// DONE, REFUSED and CANCELLED. Example: "./score was ended by signal 9 (Killed) at row 3 of 8",
// followed by the program's last output. `where` is the part "at row 3 of 8". [step]
const char *rlhf__talk_why(const struct rlhf__program *, enum rlhf__talk what, const char *where,
                           char *out, size_t cap);

#endif
