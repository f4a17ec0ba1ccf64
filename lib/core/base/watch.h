// watch.h: somebody who wants to know how far a long piece of work has come, so that whoever does
// the work need not know who that is.
#ifndef RLHF_HOST_WATCH_H
#define RLHF_HOST_WATCH_H

#include <stdint.h>

struct rlhf__watch {
    // what: a few words ("rollout", "reading rows"); done `of` all, 0 = not known. NULL = nobody.
    void (*seen)(void *arg, const char *what, int64_t done, int64_t of);
    void *arg;
};

// Tell it; w may be NULL. It may be called often: who looks decides what to show. [main]
static inline void rlhf__watch_seen(const struct rlhf__watch *w, const char *what, int64_t done,
                                    int64_t of) {
    if (w && w->seen) w->seen(w->arg, what, done, of);
}

#endif
