// note.h: the last sentence about a failure, put by whoever failed and read by whoever reports it.
//
// A failure that its caller handled must not be told with a later one: a reader asks for what was
// put after a mark that it set when its own call began.
#ifndef RLHF_HOST_NOTE_H
#define RLHF_HOST_NOTE_H

#include <rlhf/base.h>

#include <pthread.h>

struct rlhf__note {
    pthread_mutex_t lock; // of what follows
    uint64_t puts;        // so far
    rlhf_status status;
    char text[2044]; // NUL-ended; longer text is cut
};

void rlhf__note_init(struct rlhf__note *);   // [main]
void rlhf__note_finish(struct rlhf__note *); // [main]

// Keep status and text (NULL reads as ""), of which text is copied; what was kept is forgotten.
// [any]
void rlhf__note_put(struct rlhf__note *, rlhf_status status, const char *text);

// A mark for rlhf__note_since. [any]
uint64_t rlhf__note_mark(struct rlhf__note *);

// Copy the text put after the mark into out and return its status; 0 and "" when there is none.
// [any]
rlhf_status rlhf__note_since(struct rlhf__note *, uint64_t mark, char *out, size_t cap);

#endif
