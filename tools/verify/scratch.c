// scratch.c: see scratch.h.
#include "verify/scratch.h"

#include "base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

rlhf_status rlhf__scratch_make(struct rlhf__folder **out, struct rlhf__error *err) {
    char dir[RLHF__PATH_CAP];
    const char *tmp = getenv("TMPDIR");
    *out = NULL;
    rlhf__path_put(dir, "%s/rlhf-verify-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return rlhf__fail(err, RLHF_E_IO, "cannot make a directory in %s: %s",
                          tmp && *tmp ? tmp : "/tmp", strerror(errno));
    RLHF_TRY(rlhf__folder_open(NULL, dir, out, err));
    return *out ? RLHF_OK : RLHF__NOMEM(err, "out of memory for %s", dir);
}

void rlhf__scratch_remove(struct rlhf__folder *f) {
    char dir[RLHF__PATH_CAP];
    if (!f) return;
    rlhf__path_put(dir, "%s", f->path);
    rlhf__folder_close(f);
    rlhf__folder_remove(NULL, dir, NULL);
}
