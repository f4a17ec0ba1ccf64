// talk.h: one exchange with a program: what it is to read goes out while its answer comes in, so
// that pipes that are full on both sides hold up neither.
#ifndef RLHF_PLUGINS_PROCESS_TALK_H
#define RLHF_PLUGINS_PROCESS_TALK_H

#include "process/program.h"

enum rlhf__talk {
    RLHF__TALK_DONE = 0,
    RLHF__TALK_ENDED = 1,     // the program did
    RLHF__TALK_CLOSED = 2,    // it closed its standard output, and goes on
    RLHF__TALK_LATE = 3,      // rewards.timeout_s are over
    RLHF__TALK_REFUSED = 4,   // `take` says that the answer is none
    RLHF__TALK_CANCELLED = 5, // the user asked to stop
    RLHF__TALK_FAILED = 6     // a pipe failed; errno says how
};

enum rlhf__taken { RLHF__TAKEN_MORE = 0, RLHF__TAKEN_ALL = 1, RLHF__TAKEN_NONE = 2 };

struct rlhf__exchange {
    const char *send; // [n_send]
    size_t n_send, sent;
    double start_s; // it was started for this: so long may it take more until it answers at all
    // Bytes of the answer, n >= 1: whether it is whole with them (what comes behind it is `take`'s
    // too), goes on, or is none.
    enum rlhf__taken (*take)(void *ctx, const char *bytes, size_t n);
    void *ctx;
};

// Send and take until all is sent and the answer is whole. The program, which has to run, is left
// as it is: unless the answer is DONE the caller kills it. [step]
enum rlhf__talk rlhf__talk(struct rlhf__program *, struct rlhf__exchange *);

// What it wrote unasked, up to cap bytes, without waiting. [step]
size_t rlhf__talk_unasked(struct rlhf__program *, char *to, size_t cap);

// "./score was ended by signal 9 (Killed) ", what: anything but DONE, REFUSED and CANCELLED; and
// where it stood: "at row 3 of 8", with the last that it said. Into out[cap]; returns out. [step]
const char *rlhf__talk_why(const struct rlhf__program *, enum rlhf__talk what, const char *where,
                           char *out, size_t cap);

#endif
