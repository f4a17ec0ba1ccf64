// note.h: the message of the last failure, set by the function that failed and read by the caller
// that reports it.
//
// A failure that was handled must not be reported with a later one. So a reader asks for the
// message that was set after a mark, which it took when its own call began.
#ifndef RLHF_HOST_NOTE_H
#define RLHF_HOST_NOTE_H

#include <rlhf/base.h>

#include <pthread.h>

struct rlhf__note {
    pthread_mutex_t lock; // protects the members below
    uint64_t puts;        // number of calls of rlhf__note_put
    rlhf_status status;
    char text[2044]; // NUL-terminated; longer text is cut
};

void rlhf__note_init(struct rlhf__note *);   // [main]
void rlhf__note_finish(struct rlhf__note *); // [main]

// Set status and a copy of text (NULL means ""), replacing the last ones. [any]
void rlhf__note_put(struct rlhf__note *, rlhf_status status, const char *text);

// A mark for rlhf__note_since. [any]
uint64_t rlhf__note_mark(struct rlhf__note *);

// Copy the text set after the mark to out and return its status; 0 and "" without one. [any]
rlhf_status rlhf__note_since(struct rlhf__note *, uint64_t mark, char *out, size_t cap);

#endif
