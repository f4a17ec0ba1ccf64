// loading.h: what bounds and watches the loading of rows: a small file can hold very many (a gzip
// file swells a thousandfold), and somebody may want to stop it.
#ifndef RLHF_HOST_DATA_LOADING_H
#define RLHF_HOST_DATA_LOADING_H

#include "base/error.h"
#include "base/watch.h"

#include <signal.h>

#define RLHF__DATA_MAX_MIB 1024 // of memory, when nobody says anything

// Borrowed by everything that loads rows; NULL where one is wanted: the default bound, never
// stopped.
struct rlhf__loading {
    int64_t max_mib;     // what the rows of the files and their tokens may take; 0 = the default
    const char *setting; // its name in messages; NULL = "data.max_mib"
    const volatile sig_atomic_t *cancelled; // stop when it is not 0; NULL = never
    const struct rlhf__watch *watch;        // told of rows now and then; NULL = nobody
};

// Call it for every row. RLHF_E_CANCELLED; RLHF_E_INVALID when `bytes`, what is held in memory so
// far, is too much; line 0 = not said. [any]
rlhf_status rlhf__loading_check(const struct rlhf__loading *, uint64_t bytes, const char *path,
                                int64_t line, struct rlhf__error *err);

// Tell the watch, every so many rows. [main]
void rlhf__loading_seen(const struct rlhf__loading *, const char *what, int64_t done, int64_t of);

#endif
