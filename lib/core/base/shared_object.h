// shared_object.h: opening a shared object. It is never closed: its code may be on a stack, its
// constants anywhere.
#ifndef RLHF_HOST_SHARED_OBJECT_H
#define RLHF_HOST_SHARED_OBJECT_H

#include "base/error.h"

// Open the file `path`, all symbols resolved, none offered to others. RLHF_E_UNSUPPORTED when it
// cannot be loaded, RLHF_E_NOMEM when there is no memory for it. [main]
rlhf_status rlhf__shared_object_open(const char *path, void **out, struct rlhf__error *err);

#endif
