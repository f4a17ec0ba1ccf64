// utf8.h: reads untrusted text character by character, and makes it printable for messages.
#ifndef RLHF_PLUGINS_PROCESS_UTF8_H
#define RLHF_PLUGINS_PROCESS_UTF8_H

#include <stddef.h>
#include <stdint.h>

// Decodes the first character of the n >= 1 bytes at s. If it is valid, returns its length and sets
// *cp to its code point. Otherwise returns 0 and sets *bad to the number of bytes that one U+FFFD
// should replace. The host has the same rules. [any]
size_t rlhf__utf8_read(const char *s, size_t n, uint32_t *cp, size_t *bad);

// Writes n bytes in printable form to out[cap], NUL-terminated. Control characters and invalid
// bytes become escapes such as \n or \x1b. A text that is too long is cut and ends in "...". `cap`
// must be at least 16. Returns out. [any]
const char *rlhf__utf8_shown(const char *s, size_t n, char *out, size_t cap);

#endif
