// utf8.h: text of anybody, character by character, and as a message may show it.
#ifndef RLHF_PLUGINS_PROCESS_UTF8_H
#define RLHF_PLUGINS_PROCESS_UTF8_H

#include <stddef.h>
#include <stdint.h>

// How many of the n >= 1 bytes at s belong together: a character (*good = 1, *c = its code point),
// or the longest beginning of one that does not go on (*good = 0, *c = the first byte). [any]
size_t rlhf__utf8_next(const char *s, size_t n, uint32_t *c, int *good);

// The n bytes as a message shows them, into out[cap], NUL-ended: controls and bytes that are no
// UTF-8 as \n, \t, \r or \x1b; "..." at the end of what does not fit. cap >= 16. Returns out. [any]
const char *rlhf__utf8_shown(const char *s, size_t n, char *out, size_t cap);

#endif
