// context.c: entering and leaving table functions of the reference backend. See context.h.
#include "context.h"

#include <rlhf/reference.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

rlhf_status rlhf__ref_fail(struct rlhf__ref *r, rlhf_status code, const char *fmt, ...) {
    char text[512];
    int n = snprintf(text, sizeof text, "%s: ", r->op);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text + n, sizeof text - (size_t)n, fmt, ap);
    va_end(ap);
    return r->host->fail(r->host, code, text);
}

static rlhf_status check_use(struct rlhf__ref *r, uint32_t i, struct rlhf__ref_use use,
                             struct rlhf__ref_buffer **out) {
    *out = NULL;
    if (!use.p) {
        if (use.bytes == 0) return RLHF_OK;
        return rlhf__ref_fail(r, RLHF_E_INVALID, "range %u is NULL, %llu bytes are needed", i,
                              (unsigned long long)use.bytes);
    }
    *out = rlhf__ref_registry_find(&r->buffers, rlhf__ref_mem(use.p));
    if (!*out)
        return rlhf__ref_fail(r, RLHF_E_INVALID,
                              "range %u is not device memory of this backend instance", i);
    uint64_t left = (*out)->bytes - (uint64_t)((char *)rlhf__ref_mem(use.p) - (*out)->base);
    if (use.bytes > left)
        return rlhf__ref_fail(r, RLHF_E_INVALID,
                              "range %u needs %llu bytes, its buffer has %llu left", i,
                              (unsigned long long)use.bytes, (unsigned long long)left);
    return RLHF_OK;
}

rlhf_status rlhf__ref_count_call(struct rlhf__ref *r) {
    r->calls++;
    if (!r->fail_at || r->calls < r->fail_at || (r->calls > r->fail_at && !r->fail_on))
        return RLHF_OK;
    return rlhf__ref_fail(r, RLHF_E_DEVICE, "call %lld, which was to fail", (long long)r->calls);
}

rlhf_status rlhf__ref_enter(struct rlhf__ref *r, const char *op, const struct rlhf__ref_use *uses,
                            uint32_t n) {
    r->op = op;
    r->n_open = 0;
    if (n > RLHF__REF_MAX_USES) return rlhf__ref_fail(r, RLHF_E_INTERNAL, "too many ranges");
    RLHF_TRY(rlhf__ref_count_call(r));
    for (uint32_t i = 0; i < n; i++) {
        struct rlhf__ref_buffer *b;
        rlhf_status st = check_use(r, i, uses[i], &b);
        if (st < 0) return rlhf__ref_leave(r, st);
        if (!b) continue;
        rlhf__ref_registry_open(&r->buffers, b);
        r->open[r->n_open++] = b;
    }
    return RLHF_OK;
}

rlhf_status rlhf__ref_leave(struct rlhf__ref *r, rlhf_status st) {
    for (uint32_t i = 0; i < r->n_open; i++)
        rlhf__ref_registry_shut(&r->buffers, r->open[i]);
    r->n_open = 0;
    return st;
}

uint64_t rlhf__ref_extent(struct rlhf__ref *r, rlhf_dev p) {
    const struct rlhf__ref_buffer *b =
        p ? rlhf__ref_registry_find(&r->buffers, rlhf__ref_mem(p)) : NULL;
    return b ? b->bytes - (uint64_t)((char *)rlhf__ref_mem(p) - b->base) : 0;
}

rlhf_status rlhf__ref_scratch(struct rlhf__ref *r, uint64_t n, uint64_t size, void *out) {
    void *p = n <= SIZE_MAX / size ? malloc(n ? (size_t)(n * size) : 1) : NULL;
    memcpy(out, &p, sizeof p);
    if (p) return RLHF_OK;
    return rlhf__ref_fail(r, RLHF_E_NOMEM, "cannot allocate scratch of %llu x %llu bytes",
                          (unsigned long long)n, (unsigned long long)size);
}

rlhf_status rlhf__ref_check_dtype(struct rlhf__ref *r, const char *op, int32_t dtype) {
    r->op = op;
    if (dtype == RLHF_F32 || dtype == RLHF_BF16) return RLHF_OK;
    return rlhf__ref_fail(r, RLHF_E_INVALID, "dtype %d, allowed are 1 (f32) and 2 (bf16)", dtype);
}

rlhf_status rlhf__ref_check_width(struct rlhf__ref *r, const char *op, int32_t width) {
    r->op = op;
    if (width >= 1) return RLHF_OK;
    return rlhf__ref_fail(r, RLHF_E_INVALID, "width %d, must be at least 1", width);
}

rlhf_status rlhf__ref_copy_in(struct rlhf__ref *r, const char *op, void *dst, uint32_t own,
                              const void *src, uint32_t first) {
    r->op = op;
    uint32_t size;
    memcpy(&size, src, sizeof size);
    rlhf_status st = rlhf_copy_in(dst, own, src, first);
    if (st == RLHF_E_UNSUPPORTED)
        return rlhf__ref_fail(r, st, "struct size %u sets a field this backend (size %u) lacks",
                              size, own);
    if (st < 0) return rlhf__ref_fail(r, st, "struct size %u, at least %u is needed", size, first);
    return RLHF_OK;
}

// ---- for backends that embed this one (rlhf/reference.h) ----

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
