// export_gguf.h: where `rlhf-host export --gguf FILE` puts its file: in the directory of --to while
// that is filled, or beside it, where it gets its name after the directory has its own.
#ifndef RLHF_HOST_EXPORT_GGUF_H
#define RLHF_HOST_EXPORT_GGUF_H

#include "export/export_place.h"
#include "gguf/gguf.h"

// Zero-initialise; release with rlhf__export_gguf_finish, also after a failure.
struct rlhf__export_gguf {
    const char *file;                      // as given; borrowed
    const char *inside;                    // its name in the directory of --to, of file; NULL: not
    const struct rlhf__export_place *with; // --to; NULL: it is written alone; borrowed
    char fresh[RLHF__PATH_CAP];            // where it waits for its name; "" = nothing is there
};

// Check the name, place being --to or NULL: free or, with force, a regular file; in a directory
// that is there or that --to makes; in that of --to itself only as NAME.gguf, which is no name that
// an export gives. Paths are compared without links. Nothing is made. Errors: RLHF_E_INVALID.
// [main]
rlhf_status rlhf__export_gguf_choose(struct rlhf__export_gguf *, const char *file,
                                     const struct rlhf__export_place *place, int force,
                                     struct rlhf__error *err);

// Write the model; beside --to under another name until rlhf__export_gguf_commit. Errors: those of
// rlhf__gguf_write. [main]
rlhf_status rlhf__export_gguf_write(struct rlhf__export_gguf *, const struct rlhf__gguf_model *,
                                    struct rlhf__error *err);

// Give it its name, once --to has its own. Errors: RLHF_E_IO; what had the name still has. [main]
rlhf_status rlhf__export_gguf_commit(struct rlhf__export_gguf *, struct rlhf__error *err);

// Remove what was not committed. [main]
void rlhf__export_gguf_finish(struct rlhf__export_gguf *);

#endif
