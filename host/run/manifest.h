// manifest.h: manifest.json of a run: which program, plugins and kernels made it, by version and
// sha256; and whether they are the same when it goes on.
#ifndef RLHF_HOST_MANIFEST_H
#define RLHF_HOST_MANIFEST_H

#include "run/run.h"

// Write manifest.json into the run directory: for a new run, or, when the code of a resumed one has
// changed, with what it was under "earlier". [main]
rlhf_status rlhf__manifest_write(const struct rlhf__run *t, struct rlhf__error *err);

// Compare a resumed run's manifest with the code that is open now. Another id, version or sha256,
// or no manifest: RLHF_E_INVALID naming every such file, unless req->allow_changed_plugins. [main]
rlhf_status rlhf__manifest_check(const struct rlhf__run *t, struct rlhf__error *err);

#endif
