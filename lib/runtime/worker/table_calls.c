// table_calls.c: see table_calls.h.
#include "worker/table_calls.h"

#include <string.h>

struct rlhf__worker_host *rlhf__table_behind(const rlhf_host *api) {
    return (struct rlhf__worker_host *)(uintptr_t)api;
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

rlhf_status rlhf__table_ids(struct rlhf__worker_host *t, int32_t *ids, uint32_t cap, uint32_t *n) {
    struct rlhf__wire in;
    rlhf_status st = rlhf__table_call(t, &in);
    *n = 0;
    if (st != RLHF_OK) return st;
    *n = rlhf__wire_get_u32(&in);
    return rlhf__table_items(&in, sizeof *ids, *n < cap ? *n : cap, ids);
}

rlhf_status rlhf__table_encode(const rlhf_host *host, uint32_t handle, rlhf_str text, int32_t *ids,
                               uint32_t cap, uint32_t *n) {
    struct rlhf__worker_host *t = rlhf__table_behind(host);
    rlhf__table_begin(t, RLHF__CALL_ENCODE, handle);
    rlhf__wire_u32(&t->frame, cap);
    rlhf__wire_text(&t->frame, text.ptr, text.len);
    const rlhf_status st = rlhf__table_ids(t, ids, cap, n);
    rlhf__table_end(t);
    return st;
}

rlhf_status rlhf__table_decode(const rlhf_host *host, uint32_t handle, const int32_t *ids,
                               uint32_t n, char *utf8, uint64_t cap, uint64_t *len) {
    struct rlhf__worker_host *t = rlhf__table_behind(host);
    struct rlhf__wire in;
    *len = 0;
    rlhf__table_begin(t, RLHF__CALL_DECODE, handle);
    rlhf__wire_u64(&t->frame, cap);
    rlhf__wire_text(&t->frame, ids, (uint64_t)n * sizeof *ids);
    rlhf_status st = rlhf__table_call(t, &in);
    if (st == RLHF_OK) {
        *len = rlhf__wire_get_u64(&in);
        st = rlhf__table_items(&in, 1, (size_t)(*len < cap ? *len : cap), utf8);
    }
    rlhf__table_end(t);
    return st;
}
