// library.c: the functions of the reference backend for other backends, which embed it. See
// rlhf/reference.h.
#include "context.h"

#include <rlhf/reference.h>

#include <string.h>

rlhf_status rlhf_reference_enter(void *ctx, const char *op, rlhf_reference_use *uses, uint32_t n) {
    struct rlhf__ref_use own[RLHF__REF_MAX_USES] = {{NULL, 0}};
    struct rlhf__ref *r = ctx;
    r->op = op;
    if (n > RLHF__REF_MAX_USES)
        return rlhf__ref_fail(r, RLHF_E_INVALID, "%u ranges, at most %d are allowed", n,
                              RLHF__REF_MAX_USES);
    for (uint32_t i = 0; i < n; i++) {
        own[i] = (struct rlhf__ref_use){uses[i].at, uses[i].bytes};
        if (!uses[i].at) own[i].bytes = 0;
        uses[i].host = NULL;
    }
    RLHF_TRY(rlhf__ref_enter(r, op, own, n));
    for (uint32_t i = 0; i < n; i++)
        uses[i].host = rlhf__ref_mem(uses[i].at);
    return RLHF_OK;
}

rlhf_status rlhf_reference_leave(void *ctx, rlhf_status st) { return rlhf__ref_leave(ctx, st); }

rlhf_status rlhf_reference_fail(void *ctx, const char *op, rlhf_status code, const char *text) {
    struct rlhf__ref *r = ctx;
    r->op = op;
    return rlhf__ref_fail(r, code, "%s", text);
}

void rlhf_reference_set_own(void *ctx, void *own) { ((struct rlhf__ref *)ctx)->own = own; }

void *rlhf_reference_own(const void *ctx) { return ((const struct rlhf__ref *)ctx)->own; }

void rlhf_reference_fail_at(void *ctx, int64_t n, int32_t on) {
    struct rlhf__ref *r = ctx;
    r->calls = 0;
    r->fail_at = n;
    r->fail_on = on;
}

int64_t rlhf_reference_calls(const void *ctx) { return ((const struct rlhf__ref *)ctx)->calls; }
