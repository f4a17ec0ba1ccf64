// wire.c: see wire.h.
#include "wire/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { HEAD = 16 }; // size of a frame's head: kind, zero, length

static uint64_t get_le(const uint8_t *p, int bytes) {
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

// ---- writing ----

void rlhf__wire_u32(struct rlhf__buf *b, uint32_t v) { rlhf__buf_u32le(b, v); }

void rlhf__wire_u64(struct rlhf__buf *b, uint64_t v) { rlhf__buf_u64le(b, v); }

void rlhf__wire_f64(struct rlhf__buf *b, double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    rlhf__buf_u64le(b, bits);
}

void rlhf__wire_text(struct rlhf__buf *b, const void *bytes, uint64_t n) {
    rlhf__buf_u64le(b, n);
    rlhf__buf_put(b, bytes, (size_t)n);
}

void rlhf__wire_puts(struct rlhf__buf *b, const char *text) {
    rlhf__wire_text(b, text, text ? strlen(text) : 0);
}

void rlhf__wire_begin(struct rlhf__buf *b, uint32_t kind) {
    rlhf__buf_clear(b);
    rlhf__buf_u32le(b, kind);
    rlhf__buf_u32le(b, 0);
    rlhf__buf_u64le(b, 0);
}

void rlhf__wire_end(struct rlhf__buf *b) {
    if (b->bad) return;
    for (size_t i = 0; i < 8; i++)
        b->data[8 + i] = (char)(uint8_t)((uint64_t)(b->len - HEAD) >> (8 * i));
}

// ---- reading ----

static const uint8_t *take(struct rlhf__wire *w, uint64_t n) {
    const uint8_t *at = w->at;
    if (w->bad || n > (uint64_t)(w->end - at)) {
        w->bad = 1;
        return NULL;
    }
    w->at += n;
    return at;
}

uint32_t rlhf__wire_get_u32(struct rlhf__wire *w) {
    const uint8_t *p = take(w, 4);
    return p ? (uint32_t)get_le(p, 4) : 0;
}

uint64_t rlhf__wire_get_u64(struct rlhf__wire *w) {
    const uint8_t *p = take(w, 8);
    return p ? get_le(p, 8) : 0;
}

double rlhf__wire_get_f64(struct rlhf__wire *w) {
    const uint64_t bits = rlhf__wire_get_u64(w);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

rlhf_str rlhf__wire_get_text(struct rlhf__wire *w) {
    const uint64_t n = rlhf__wire_get_u64(w);
    const uint8_t *p = take(w, n);
    return p ? (rlhf_str){(const char *)p, n} : (rlhf_str){"", 0};
}

const void *rlhf__wire_get_items(struct rlhf__wire *w, size_t size, size_t *n) {
    const rlhf_str s = rlhf__wire_get_text(w);
    if (s.len % size) w->bad = 1;
    *n = w->bad ? 0 : (size_t)(s.len / size);
    return s.ptr;
}

int rlhf__wire_front(const struct rlhf__buf *b, size_t at, uint64_t most, struct rlhf__wire *out,
                     size_t *bytes) {
    if (b->bad) return -1;
    if (b->len - at < HEAD) return 0;
    const uint8_t *p = (const uint8_t *)b->data + at;
    const uint64_t len = get_le(p + 8, 8);
    if (get_le(p + 4, 4) != 0 || len > RLHF__WIRE_MAX) return -1;
    if (len > most) return -2;
    if (b->len - at - HEAD < len) return 0;
    *out = (struct rlhf__wire){p + HEAD, p + HEAD + len, (uint32_t)get_le(p, 4), 0};
    *bytes = HEAD + (size_t)len;
    return 1;
}

// ---- by waiting ----

int rlhf__wire_send(int fd, const struct rlhf__buf *frame) {
    if (frame->bad) return -1;
    for (size_t at = 0; at < frame->len;) {
        const ssize_t n = send(fd, frame->data + at, frame->len - at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return -1;
        at += (size_t)n;
    }
    return 0;
}

static int receive(int fd, void *to, size_t n) {
    for (size_t at = 0; at < n;) {
        const ssize_t got = recv(fd, (char *)to + at, n - at, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return -1;
        at += (size_t)got;
    }
    return 0;
}

int rlhf__wire_receive(int fd, struct rlhf__buf *b, struct rlhf__wire *out) {
    size_t bytes;
    rlhf__buf_clear(b);
    void *head = rlhf__buf_grow(b, HEAD);
    if (!head || receive(fd, head, HEAD) != 0) return -1;
    const uint64_t len = get_le((const uint8_t *)b->data + 8, 8);
    if (len > RLHF__WIRE_MAX) return -1;
    void *body = len ? rlhf__buf_grow(b, (size_t)len) : head;
    if (!body || (len && receive(fd, body, (size_t)len) != 0)) return -1;
    return rlhf__wire_front(b, 0, RLHF__WIRE_MAX, out, &bytes) == 1 ? 0 : -1;
}
