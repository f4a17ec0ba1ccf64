// export_gguf.h: places the file of `rlhf-host export --gguf FILE`: in the directory of --to while
// that is filled, or elsewhere, where it is renamed after the directory.
#ifndef RLHF_HOST_EXPORT_GGUF_H
#define RLHF_HOST_EXPORT_GGUF_H

#include "export/export_place.h"
#include "gguf/gguf.h"

// Zero-initialise; release with rlhf__export_gguf_finish, also after a failure.
struct rlhf__export_gguf {
    const char *file;                      // as given; borrowed
    const char *inside;                    // its name within --to (part of `file`); NULL: it is not
                                           // there
    const struct rlhf__export_place *with; // --to; NULL: there is only the file; borrowed
    char fresh[RLHF__PATH_CAP];            // where it waits for its name; "" = nothing is there
};

// Check the name; place is --to or NULL. It must be free or, with force, a regular file, and its
// directory must exist or be made by --to. In --to itself only NAME.gguf is allowed, which no other
// exported file is called. Paths are compared after resolving links. Creates nothing. Errors:
// RLHF_E_INVALID. [main]
rlhf_status rlhf__export_gguf_choose(struct rlhf__export_gguf *, const char *file,
                                     const struct rlhf__export_place *place, int force,
                                     struct rlhf__error *err);

// Write the model; with --to under a temporary name until rlhf__export_gguf_commit. Errors: those
// of rlhf__gguf_write. [main]
rlhf_status rlhf__export_gguf_write(struct rlhf__export_gguf *, const struct rlhf__gguf_model *,
                                    struct rlhf__error *err);

// Give it its final name, after --to has its own. Errors: RLHF_E_IO; an existing file is then
// unchanged. [main]
rlhf_status rlhf__export_gguf_commit(struct rlhf__export_gguf *, struct rlhf__error *err);

// Remove files that were not committed. [main]
void rlhf__export_gguf_finish(struct rlhf__export_gguf *);

#endif
