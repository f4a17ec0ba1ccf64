// text.h: a growing byte string in the host's memory, and the JSON that requests are made of.
#ifndef RLHF_REWARDS_HTTP_TEXT_H
#define RLHF_REWARDS_HTTP_TEXT_H

#include <rlhf/host.h>

// Zeroed but for host: an empty one. A failed allocation is remembered, and what comes after it is
// left out; ask once at the end.
struct rlhf__text {
    const rlhf_host *host;
    char *at;
    size_t len, cap;
    int32_t failed, reserved;
};

void rlhf__text_put(struct rlhf__text *, const char *bytes, size_t n); // [any]
void rlhf__text_puts(struct rlhf__text *, const char *s);              // [any]
// A JSON string with quotes; bytes that are no UTF-8 become U+FFFD. [any]
void rlhf__text_json(struct rlhf__text *, rlhf_str s);
void rlhf__text_clear(struct rlhf__text *);  // empty, the memory stays [any]
void rlhf__text_finish(struct rlhf__text *); // [any]

// At most 60 bytes of foreign text as a log may show them, in quotes, what is not plain ASCII
// spelt \x1b. Returns out. [any]
const char *rlhf__excerpt(const char *bytes, size_t n, char out[260]);

#endif
