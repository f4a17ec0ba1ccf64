// shared_object.c: see shared_object.h.
#include "plugin/shared_object.h"

#include "base/running.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

rlhf_status rlhf__shared_object_open(const char *path, void **out, struct rlhf__error *err) {
    int flags = RTLD_NOW | RTLD_LOCAL;
#ifdef RLHF_SANITIZED
    flags |= RTLD_NODELETE; // so that leak reports can still name the file
#endif
    const struct rlhf__running before = rlhf__running_begin("shared object", path, "dlopen()");
    errno = 0;
    *out = dlopen(path, flags);
    rlhf__running_end(&before);
    if (*out) return RLHF_OK;
    // dlerror() returns the cause as text. After an allocation failure it may be unable to build
    // that text, so check errno too.
    const int memory = errno == ENOMEM;
    const char *why = dlerror();
    const size_t n = strlen(path);
    if (memory || !why)
        return rlhf__fail(err, RLHF_E_NOMEM, "%s: cannot be loaded: out of memory", path);
    if (strncmp(why, path, n) == 0 && why[n] == ':') why += n + 1 + (why[n + 1] == ' ');
    return rlhf__fail(err, RLHF_E_UNSUPPORTED, "%s: cannot be loaded: %s", path, why);
}
