// export_place.h: a directory that appears whole or not at all: it is filled under another name
// beside its own and renamed when it is complete.
#ifndef RLHF_HOST_EXPORT_PLACE_H
#define RLHF_HOST_EXPORT_PLACE_H

#include "base/file.h"
#include "base/folder.h"

#include <time.h>

// Zero-initialise; release with rlhf__export_place_finish, also after a failure.
struct rlhf__export_place {
    char to[RLHF__PATH_CAP];    // its name, without '/' at the end
    char fresh[RLHF__PATH_CAP]; // where it is filled; "" = nothing is there
    struct rlhf__folder *dir;   // that one
    int32_t replaces;           // 1: a model directory of that name goes
    int32_t reserved;
    struct timespec seen; // when an entry of that one last came or went
};

// Check the name: free, an empty directory or, with force, a model directory that an export could
// have left.
// Nothing is made. Errors: RLHF_E_INVALID. [main]
rlhf_status rlhf__export_place_choose(struct rlhf__export_place *, const char *to, int force,
                                      struct rlhf__error *err);

// A path, absolute, without links as far as it exists and without "." and "..": two that are equal
// so are one place. "" where it is longer than a path may be. [main]
void rlhf__export_place_real(const char *path, char real[RLHF__PATH_CAP]);

// Make `dir`, and the directories above it where they are missing. Errors: RLHF_E_IO. [main]
rlhf_status rlhf__export_place_open(struct rlhf__export_place *, struct rlhf__error *err);

// Give the directory its name; one that is replaced has it until the new one has it. Errors:
// RLHF_E_INVALID (somebody else made one, or put something into it since it was chosen), RLHF_E_IO;
// the old one is what it was. [main]
rlhf_status rlhf__export_place_commit(struct rlhf__export_place *, struct rlhf__error *err);

// Remove what was not committed. [main]
void rlhf__export_place_finish(struct rlhf__export_place *);

#endif
