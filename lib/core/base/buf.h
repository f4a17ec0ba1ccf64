// buf.h: a growable byte buffer. The byte after the contents is always NUL, so text can be read as
// a string.
//
// After a failed allocation the buffer is bad: later appends do nothing, and rlhf__buf_ok returns
// the error. So callers check only once, at the end.
#ifndef RLHF_CORE_BASE_BUF_H
#define RLHF_CORE_BASE_BUF_H

#include "base/error.h"

#include <stdarg.h>

struct rlhf__buf {
    char *data; // NULL until the first append
    size_t len, cap;
    int32_t bad; // 1 after a failed allocation
};

// An empty buffer: `struct rlhf__buf b = RLHF__BUF_INIT;`
#define RLHF__BUF_INIT                                                                             \
    { NULL, 0, 0, 0 }

// Free the bytes and make *b empty again. [any]
void rlhf__buf_finish(struct rlhf__buf *b);

// Set the length to 0, but keep the memory for later appends. [any]
void rlhf__buf_clear(struct rlhf__buf *b);

// Append `n` bytes. `bytes` may be NULL if `n` is 0. [any]
void rlhf__buf_put(struct rlhf__buf *b, const void *bytes, size_t n);

// Append a NUL-ended string, one byte, or formatted text. [any]
void rlhf__buf_puts(struct rlhf__buf *b, const char *text);
void rlhf__buf_putc(struct rlhf__buf *b, char c);
__attribute__((format(printf, 2, 3))) void rlhf__buf_printf(struct rlhf__buf *b, const char *fmt,
                                                            ...);

// Append `v` as a fixed-width little-endian integer. [any]
void rlhf__buf_u32le(struct rlhf__buf *b, uint32_t v);
void rlhf__buf_u64le(struct rlhf__buf *b, uint64_t v);

// Append n bytes in base64, with padding. [any]
void rlhf__put_base64(struct rlhf__buf *b, const void *bytes, size_t n);

// Increase the length by n bytes. Returns a pointer to the new bytes, for the caller to fill, or
// NULL if the buffer is bad. [any]
void *rlhf__buf_grow(struct rlhf__buf *b, size_t n);

// Returns RLHF_OK, or RLHF_E_NOMEM if an append has failed. [any]
rlhf_status rlhf__buf_ok(const struct rlhf__buf *b, struct rlhf__error *err);

// Returns the text, never NULL. It is borrowed until the next append. [any]
const char *rlhf__buf_text(const struct rlhf__buf *b);

#endif
