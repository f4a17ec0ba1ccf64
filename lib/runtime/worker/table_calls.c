// table_calls.c: see table_calls.h.
#include "worker/table_calls.h"

#include <string.h>

struct rlhf__worker_host *rlhf__table_behind(const rlhf_host *api) {
    return (struct rlhf__worker_host *)(uintptr_t)api;
}

rlhf_status rlhf__table_here(struct rlhf__worker_host *t) {
    char why[256];
    if (!rlhf__on_call_service(&t->on_call, why, sizeof why)) return RLHF_OK;
    return t->api.fail(&t->api, RLHF_E_INVALID, why);
}

void rlhf__table_begin_open(struct rlhf__worker_host *t, uint32_t kind, const char *path) {
    pthread_mutex_lock(&t->lock);
    rlhf__wire_begin(&t->frame, kind);
    rlhf__wire_u32(&t->frame, path != NULL);
    rlhf__wire_puts(&t->frame, path);
}

void rlhf__table_begin(struct rlhf__worker_host *t, uint32_t kind, uint32_t handle) {
    pthread_mutex_lock(&t->lock);
    rlhf__wire_begin(&t->frame, kind);
    rlhf__wire_u32(&t->frame, handle);
}

void rlhf__table_end(struct rlhf__worker_host *t) { pthread_mutex_unlock(&t->lock); }

void rlhf__table_close(struct rlhf__worker_host *t, uint32_t handle) {
    struct rlhf__wire in;
    rlhf__table_begin(t, RLHF__CALL_CLOSE, handle);
    rlhf__table_call(t, &in);
    rlhf__table_end(t);
}

rlhf_status rlhf__table_items(struct rlhf__wire *in, size_t size, size_t n, void *out) {
    size_t got;
    const void *items = rlhf__wire_get_items(in, size, &got);
    if (in->bad || got != n) return RLHF_E_INTERNAL;
    if (n) memcpy(out, items, n * size);
    return RLHF_OK;
}

void rlhf__table_rows(struct rlhf__worker_host *t, uint32_t n, const int32_t *ids,
                      const int32_t *offset, const int32_t *prompt_len) {
    rlhf__wire_text(&t->frame, ids, (uint64_t)offset[n] * sizeof *ids);
    rlhf__wire_text(&t->frame, offset, ((uint64_t)n + 1) * sizeof *offset);
    rlhf__wire_text(&t->frame, prompt_len, (uint64_t)n * sizeof *prompt_len);
}

// ---- texts ----

rlhf_status rlhf__table_take_ids(const rlhf_host *host, rlhf_encode_out *out,
                                 const rlhf_encode_out *from) {
    RLHF_TRY(RLHF__TAKE(host, rlhf_encode_out, out, from, reserved));
    return rlhf__service_needs(host, out->ids || !out->cap, "encode()", "ids");
}

rlhf_status rlhf__table_ids(struct rlhf__worker_host *t, const rlhf_encode_out *out,
                            rlhf_encode_out *to) {
    struct rlhf__wire in;
    RLHF_TRY(rlhf__table_call(t, &in));
    const uint32_t n = rlhf__wire_get_u32(&in);
    to->n = n;
    return rlhf__table_items(&in, sizeof *out->ids, n < out->cap ? n : out->cap, out->ids);
}

rlhf_status rlhf__table_encode(const rlhf_host *host, uint32_t handle, const rlhf_encode_in *how,
                               rlhf_encode_out *to) {
    struct rlhf__worker_host *t = rlhf__table_behind(host);
    rlhf_encode_in q;
    rlhf_encode_out out;
    RLHF_TRY(RLHF__TAKE(host, rlhf_encode_in, &q, how, text));
    RLHF_TRY(rlhf__table_take_ids(host, &out, to));
    rlhf__table_begin(t, RLHF__CALL_ENCODE, handle);
    rlhf__wire_u32(&t->frame, out.cap);
    rlhf__wire_text(&t->frame, q.text.ptr, q.text.len);
    const rlhf_status st = rlhf__table_ids(t, &out, to);
    rlhf__table_end(t);
    return st;
}

rlhf_status rlhf__table_decode(const rlhf_host *host, uint32_t handle, const rlhf_decode_in *how,
                               rlhf_decode_out *to) {
    struct rlhf__worker_host *t = rlhf__table_behind(host);
    struct rlhf__wire in;
    rlhf_decode_in q;
    rlhf_decode_out out;
    RLHF_TRY(RLHF__TAKE(host, rlhf_decode_in, &q, how, ids));
    RLHF_TRY(RLHF__TAKE(host, rlhf_decode_out, &out, to, len));
    RLHF_TRY(rlhf__service_needs(host, (q.ids || !q.n) && (out.utf8 || !out.cap), "decode()",
                                 "ids and utf8"));
    rlhf__table_begin(t, RLHF__CALL_DECODE, handle);
    rlhf__wire_u64(&t->frame, out.cap);
    rlhf__wire_text(&t->frame, q.ids, (uint64_t)q.n * sizeof *q.ids);
    rlhf_status st = rlhf__table_call(t, &in);
    if (st == RLHF_OK) {
        const uint64_t len = rlhf__wire_get_u64(&in);
        to->len = len;
        st = rlhf__table_items(&in, 1, (size_t)(len < out.cap ? len : out.cap), out.utf8);
    }
    rlhf__table_end(t);
    return st;
}
