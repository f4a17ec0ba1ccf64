// transformer/internal.c: helpers for all files of the core: reporting failures, reading the host's
// structs, and the default distribution.
#include "internal.h"

#include <string.h>

static const rlhf_dist unit_dist = RLHF_DIST_WHOLE;

const rlhf_dist *rlhf__tf_dist(const rlhf_dist *d) { return d ? d : &unit_dist; }

rlhf_status rlhf__tf_fail(struct rlhf__tf *m, rlhf_status code, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return m->host->fail(m->host, code, text);
}

rlhf_status rlhf__tf_copy_in(struct rlhf__tf *m, const char *what, void *dst, uint32_t own,
                             const void *src, uint32_t first) {
    uint32_t size;
    memcpy(&size, src, sizeof size);
    rlhf_status st = rlhf_copy_in(dst, own, src, first);
    if (st == RLHF_E_UNSUPPORTED)
        return rlhf__tf_fail(m, st, "%s sets a field newer than this model (%u > %u bytes)", what,
                             size, own);
    if (st < 0)
        return rlhf__tf_fail(m, st, "%s says it has %u bytes, at least %u are needed", what, size,
                             first);
    return RLHF_OK;
}
