// shared_object.h: opens a shared object. It is never closed, because a thread may still be
// executing its code, and its constants may be referenced from anywhere.
#ifndef RLHF_RUNTIME_PLUGIN_SHARED_OBJECT_H
#define RLHF_RUNTIME_PLUGIN_SHARED_OBJECT_H

#include "base/error.h"

// Open the file `path` with all its symbols resolved. Other objects cannot use these symbols.
// Errors: RLHF_E_UNSUPPORTED if the object cannot be loaded, RLHF_E_NOMEM if memory runs out.
// [main]
rlhf_status rlhf__shared_object_open(const char *path, void **out, struct rlhf__error *err);

#endif
