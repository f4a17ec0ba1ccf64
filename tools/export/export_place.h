// export_place.h: the directory of --to and the file of --gguf, into which an export is written.
// Both have temporary names next to their final names, and are renamed when they are complete.
#ifndef RLHF_TOOLS_EXPORT_EXPORT_PLACE_H
#define RLHF_TOOLS_EXPORT_EXPORT_PLACE_H

#include "base/file.h"
#include "base/folder.h"
#include "export/export_own.h"

#include <time.h>

// ---- the directory of --to ----

// Zero-initialize; release with rlhf__export_place_finish, even after a failure.
struct rlhf__export_place {
    char to[RLHF__PATH_CAP];     // its final name, without '/' at the end
    char fresh[RLHF__PATH_CAP];  // its temporary name; "" = not created
    struct rlhf__folder *dir;    // the directory that is being filled
    int32_t replaces;            // 1: it replaces a model directory of that name
    struct timespec seen;        // modification time of the replaced directory
    struct rlhf__export_own own; // the files of the replaced directory that stay
};

// Check the name `to`. The name must be free or belong to an empty directory. With `force`, it may
// also belong to a model directory that an export could have left. Creates nothing. Errors:
// RLHF_E_INVALID. [main]
rlhf_status rlhf__export_place_choose(struct rlhf__export_place *, const char *to, int force,
                                      struct rlhf__error *err);

// Make a path absolute, without "." and "..", and with links resolved as far as the path exists.
// Two paths with equal results are the same place. The result is "" if it would be too long. [main]
void rlhf__export_place_real(const char *path, char real[RLHF__PATH_CAP]);

// Create `dir`, and its parent directories if missing. Errors: RLHF_E_IO. [main]
rlhf_status rlhf__export_place_open(struct rlhf__export_place *, struct rlhf__error *err);

// Rename the directory to its final name. If possible, replaces the old directory in the same step.
// Files of the old directory that no export writes are in the new one as well. Errors:
// RLHF_E_INVALID (another process created the directory or changed its entries after the check of
// the name), RLHF_E_IO. After an error, the old directory is unchanged. [main]
rlhf_status rlhf__export_place_commit(struct rlhf__export_place *, struct rlhf__error *err);

// Remove a directory that was not committed. [main]
void rlhf__export_place_finish(struct rlhf__export_place *);

// ---- the file of --gguf: in the temporary directory of --to, or elsewhere ----

// Next to FILE.gguf there is a Modelfile: FILE.Modelfile or, inside the directory of --to,
// "Modelfile". Zero-initialize; release with rlhf__export_gguf_finish, even after a failure.
struct rlhf__export_gguf {
    const char *file;   // as given; borrowed
    const char *inside; // its name within --to (part of `file`); NULL: it is elsewhere
    const struct rlhf__export_place *with; // --to, borrowed; NULL: only the file is written
    char about[RLHF__PATH_CAP];            // its Modelfile, if it is elsewhere
    char fresh[RLHF__PATH_CAP];            // its temporary name; "" = not created
};

// Check the name `file`. `place` is the directory of --to, or NULL. The names of the file and of
// its Modelfile must be free or, with `force`, belong to regular files. The file's directory must
// exist, or be the one that --to creates. Inside --to, only NAME.gguf is allowed, because it cannot
// clash with another exported file. Paths are compared after resolving links. Creates nothing.
// Errors: RLHF_E_INVALID. [main]
rlhf_status rlhf__export_gguf_choose(struct rlhf__export_gguf *, const char *file,
                                     const struct rlhf__export_place *place, int force,
                                     struct rlhf__error *err);

// Set *in and *name to the place where the file is written. *in may be NULL. With --to, the file
// keeps a temporary name until rlhf__export_gguf_commit. Errors: RLHF_E_INVALID (a path that is too
// long). [main]
rlhf_status rlhf__export_gguf_where(struct rlhf__export_gguf *, const struct rlhf__folder **in,
                                    const char **name, struct rlhf__error *err);

// If the file is inside --to, write its Modelfile there. Call this before
// rlhf__export_place_commit. Errors: RLHF_E_IO. [main]
rlhf_status rlhf__export_gguf_about(const struct rlhf__export_gguf *,
                                    const struct rlhf__buf *modelfile, struct rlhf__error *err);

// If the file is elsewhere, rename the temporary file to its final name, and write its Modelfile.
// With --to, call this after rlhf__export_place_commit. Errors: RLHF_E_IO; if the file could not be
// renamed, an existing file of that name is unchanged. [main]
rlhf_status rlhf__export_gguf_commit(struct rlhf__export_gguf *, const struct rlhf__buf *modelfile,
                                     struct rlhf__error *err);

// Remove files that were not committed. [main]
void rlhf__export_gguf_finish(struct rlhf__export_gguf *);

#endif
