// buf.c: see buf.h.
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rlhf__buf_finish(struct rlhf__buf *b) {
    free(b->data);
    *b = (struct rlhf__buf)RLHF__BUF_INIT;
}

void rlhf__buf_clear(struct rlhf__buf *b) {
    b->len = 0;
    if (b->data) b->data[0] = '\0';
}

// Make room for `n` more bytes and the NUL. Returns 0 if memory runs out.
static int reserve(struct rlhf__buf *b, size_t n) {
    if (b->bad || n >= SIZE_MAX / 2 - b->len) {
        b->bad = 1;
        return 0;
    }
    size_t want = b->len + n + 1;
    if (want <= b->cap) return 1;
    size_t cap = b->cap < 64 ? 64 : b->cap;
    while (cap < want)
        cap *= 2; // cannot wrap: want < SIZE_MAX / 2
    char *data = realloc(b->data, cap);
    if (!data) {
        b->bad = 1;
        return 0;
    }
    b->data = data;
    b->cap = cap;
    return 1;
}

void *rlhf__buf_grow(struct rlhf__buf *b, size_t n) {
    if (!reserve(b, n)) return NULL;
    char *at = b->data + b->len;
    b->len += n;
    b->data[b->len] = '\0';
    return at;
}

void rlhf__buf_put(struct rlhf__buf *b, const void *bytes, size_t n) {
    void *at = rlhf__buf_grow(b, n);
    if (at && n) memcpy(at, bytes, n);
}

void rlhf__buf_puts(struct rlhf__buf *b, const char *text) { rlhf__buf_put(b, text, strlen(text)); }

void rlhf__buf_putc(struct rlhf__buf *b, char c) { rlhf__buf_put(b, &c, 1); }

void rlhf__buf_printf(struct rlhf__buf *b, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    size_t room = !b->bad && reserve(b, 0) ? b->cap - b->len : 0;
    int n = vsnprintf(room ? b->data + b->len : NULL, room, fmt, ap);
    va_end(ap);
    if (n < 0) {
        b->bad = 1;
    } else if ((size_t)n < room) {
        b->len += (size_t)n;
    } else if (reserve(b, (size_t)n)) {
        vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void rlhf__buf_u32le(struct rlhf__buf *b, uint32_t v) {
    uint8_t bytes[4];
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(v >> (8 * i));
    rlhf__buf_put(b, bytes, sizeof bytes);
}

void rlhf__buf_u64le(struct rlhf__buf *b, uint64_t v) {
    rlhf__buf_u32le(b, (uint32_t)v);
    rlhf__buf_u32le(b, (uint32_t)(v >> 32));
}

void rlhf__put_base64(struct rlhf__buf *b, const void *bytes, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *at = bytes;
    for (size_t i = 0; i < n; i += 3) {
        const uint32_t v = (uint32_t)at[i] << 16 | (i + 1 < n ? (uint32_t)at[i + 1] << 8 : 0) |
                           (i + 2 < n ? (uint32_t)at[i + 2] : 0);
        rlhf__buf_putc(b, digits[v >> 18]);
        rlhf__buf_putc(b, digits[v >> 12 & 63]);
        rlhf__buf_putc(b, i + 1 < n ? digits[v >> 6 & 63] : '=');
        rlhf__buf_putc(b, i + 2 < n ? digits[v & 63] : '=');
    }
}

rlhf_status rlhf__buf_ok(const struct rlhf__buf *b, struct rlhf__error *err) {
    if (b->bad) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory (a text of %zu bytes)", b->len);
    return RLHF_OK;
}

const char *rlhf__buf_text(const struct rlhf__buf *b) { return b->data ? b->data : ""; }
