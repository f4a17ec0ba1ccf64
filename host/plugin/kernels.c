// kernels.c: see kernels.h.
#include "plugin/kernels.h"

#include "plugin/load.h"

#include <string.h>

rlhf_status rlhf__kernels_check(const char *path, const rlhf_kernels *src, rlhf_kernels *out,
                                struct rlhf__error *err) {
    uint32_t head[3]; // size, abi_major, abi_minor: never move
    memset(out, 0, sizeof *out);
    if (!src)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "compute backend '%s': " RLHF_KERNELS_SYMBOL "() returned nothing", path);
    memcpy(head, src, sizeof head);
    if (head[1] != RLHF_ABI_MAJOR || head[2] != RLHF_ABI_MINOR)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "compute backend '%s' is for contract %u.%u, this host needs %d.%d", path,
                          head[1], head[2], RLHF_ABI_MAJOR, RLHF_ABI_MINOR);
    const rlhf_status st = rlhf__copy_in(out, sizeof *out, src, RLHF_SIZE_TO(rlhf_kernels, destroy),
                                         "rlhf_kernels", err);
    if (st != RLHF_OK) return rlhf__error_context(err, "compute backend '%s'", path);
    if (out->create && out->destroy) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "compute backend '%s' lacks the function %s()", path,
                      out->create ? "destroy" : "create");
}
