// note.h: stores the message of the last failure. The function that fails sets it, and the caller
// that reports the failure reads it.
//
// If a failure was handled, its message must not appear in the report of a later failure. The
// reader therefore takes a mark when its own call begins, and asks only for a message that was set
// after the mark.
#ifndef RLHF_HOST_PLUGIN_NOTE_H
#define RLHF_HOST_PLUGIN_NOTE_H

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

// Set the status and a copy of `text` (NULL means ""). They replace the previous ones. [any]
void rlhf__note_put(struct rlhf__note *, rlhf_status status, const char *text);

// Returns a mark for rlhf__note_since. [any]
uint64_t rlhf__note_mark(struct rlhf__note *);

// If a message was set after the mark, copies it to `out` and returns its status. Otherwise sets
// `out` to "" and returns 0. [any]
rlhf_status rlhf__note_since(struct rlhf__note *, uint64_t mark, char *out, size_t cap);

#endif
