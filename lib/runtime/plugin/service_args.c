// service_args.c: see service_args.h.
#include "plugin/service_args.h"

#include "plugin/services.h"

static rlhf_status bad_struct(const rlhf_host *host, rlhf_status st, enum rlhf__struct which) {
    struct rlhf__error err = {0, ""};
    rlhf__fail(&err, st, "%s %s", rlhf__struct_name(which),
               st == RLHF_E_INVALID ? "has a size that it never had"
                                    : "has a member that this host does not know");
    return rlhf__service_failed(host, &err);
}

rlhf_status rlhf__service_take(const rlhf_host *host, enum rlhf__struct which, void *to,
                               uint32_t own, const void *from, uint32_t first) {
    struct rlhf__error err = {0, ""};
    const rlhf_status st = rlhf_copy_in(to, own, from, first);
    if (st != RLHF_OK) return bad_struct(host, st, which);
    const uint32_t reserved = rlhf__struct_reserved(which, to);
    if (!reserved) return RLHF_OK;
    rlhf__fail(&err, RLHF_E_UNSUPPORTED, "`reserved` of %s is %u; it must be 0",
               rlhf__struct_name(which), reserved);
    return rlhf__service_failed(host, &err);
}

rlhf_status rlhf__service_give(const rlhf_host *host, enum rlhf__struct which, void *to,
                               const void *from, uint32_t own, uint32_t first) {
    uint32_t size;
    memcpy(&size, to, sizeof size);
    const rlhf_status st = rlhf_copy_out(to, from, size < own ? size : own, first);
    return st == RLHF_OK ? st : bad_struct(host, st, which);
}

rlhf_status rlhf__service_needs(const rlhf_host *host, int given, const char *what,
                                const char *arrays) {
    struct rlhf__error err = {0, ""};
    if (given) return RLHF_OK;
    rlhf__fail(&err, RLHF_E_INVALID, "%s of a service needs %s, but one is NULL", what, arrays);
    return rlhf__service_failed(host, &err);
}

rlhf_status rlhf__service_rows(const rlhf_host *host, uint32_t n, const int32_t *offset,
                               const int32_t *prompt_len) {
    struct rlhf__error err = {0, ""};
    if (n && offset[0] != 0)
        rlhf__fail(&err, RLHF_E_INVALID, "the rows begin at offset %d; offset[0] must be 0",
                   offset[0]);
    for (uint32_t i = 0; i < n && err.code == 0; i++) {
        const int64_t len = (int64_t)offset[i + 1] - offset[i];
        const int64_t prompt = prompt_len ? prompt_len[i] : len;
        if (len < 1 || prompt < 1 || prompt > len)
            rlhf__fail(&err, RLHF_E_INVALID,
                       "row %u has %lld tokens and a prompt of %lld; a row has at least 1 token, "
                       "and its prompt from 1 to all of them",
                       i, (long long)len, (long long)prompt);
    }
    return err.code == 0 ? RLHF_OK : rlhf__service_failed(host, &err);
}
