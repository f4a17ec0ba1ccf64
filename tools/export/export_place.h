// export_place.h: creates a directory atomically: it is filled under a temporary name next to its
// final one and renamed when complete.
#ifndef RLHF_HOST_EXPORT_PLACE_H
#define RLHF_HOST_EXPORT_PLACE_H

#include "base/file.h"
#include "base/folder.h"

#include <time.h>

// Zero-initialise; release with rlhf__export_place_finish, also after a failure.
struct rlhf__export_place {
    char to[RLHF__PATH_CAP];    // its final name, without '/' at the end
    char fresh[RLHF__PATH_CAP]; // where it is filled; "" = nothing is there
    struct rlhf__folder *dir;   // the directory that is being filled
    int32_t replaces;           // 1: it replaces a model directory of that name
    int32_t reserved;
    struct timespec seen; // modification time of that one
};

// Check the name: free, an empty directory or, with force, a model directory that an export could
// have left. Creates nothing. Errors: RLHF_E_INVALID. [main]
rlhf_status rlhf__export_place_choose(struct rlhf__export_place *, const char *to, int force,
                                      struct rlhf__error *err);

// Make a path absolute, with links resolved as far as it exists, and without "." and "..": equal
// results are the same place. "" if it is too long. [main]
void rlhf__export_place_real(const char *path, char real[RLHF__PATH_CAP]);

// Create `dir`, and its parent directories if missing. Errors: RLHF_E_IO. [main]
rlhf_status rlhf__export_place_open(struct rlhf__export_place *, struct rlhf__error *err);

// Rename the directory to its final name, replacing the old one in the same step if possible.
// Errors: RLHF_E_INVALID (another process created one, or added an entry to it, since it was
// chosen), RLHF_E_IO; the old one is then unchanged. [main]
rlhf_status rlhf__export_place_commit(struct rlhf__export_place *, struct rlhf__error *err);

// Remove a directory that was not committed. [main]
void rlhf__export_place_finish(struct rlhf__export_place *);

#endif
