// utf8.h: text of anybody, character by character, and as a message may show it.
#ifndef RLHF_PLUGINS_PROCESS_UTF8_H
#define RLHF_PLUGINS_PROCESS_UTF8_H

#include <stddef.h>
#include <stdint.h>

// Length of the well-formed character at s (n >= 1 bytes are there), *cp its code point; 0 where an
// ill-formed sequence begins, then *bad is the length of the part to replace by one U+FFFD. As in
// the host. [any]
size_t rlhf__utf8_next(const char *s, size_t n, uint32_t *cp, size_t *bad);

// The n bytes as a message shows them, into out[cap], NUL-ended: controls and bytes that are no
// UTF-8 as \n, \t, \r or \x1b; "..." at the end of what does not fit. cap >= 16. Returns out. [any]
const char *rlhf__utf8_shown(const char *s, size_t n, char *out, size_t cap);

#endif
