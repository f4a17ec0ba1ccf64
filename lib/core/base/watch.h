// watch.h: a progress callback for long work. The code that does the work need not know who shows
// the progress.
#ifndef RLHF_CORE_BASE_WATCH_H
#define RLHF_CORE_BASE_WATCH_H

#include <stdint.h>

struct rlhf__watch {
    // Called as the work proceeds. `what` names the work in a few words ("rollout", "reading
    // rows"). `done` is the finished amount, and `of` is the total, or 0 if the total is unknown.
    // The callback may be NULL.
    void (*seen)(void *arg, const char *what, int64_t done, int64_t of);
    void *arg;
};

// Report progress; `w` may be NULL. Call this function often: the callback decides what to show.
// [main]
static inline void rlhf__watch_seen(const struct rlhf__watch *w, const char *what, int64_t done,
                                    int64_t of) {
    if (w && w->seen) w->seen(w->arg, what, done, of);
}

#endif
