// utf8.h: reads untrusted text character by character, and makes it printable for messages.
#ifndef RLHF_PLUGINS_PROCESS_UTF8_H
#define RLHF_PLUGINS_PROCESS_UTF8_H

#include <stddef.h>
#include <stdint.h>

// Length of the well-formed character at s, with n >= 1 bytes available; *cp = its code point.
// Returns 0 at an ill-formed sequence; *bad is then the number of bytes to replace by one U+FFFD.
// The host has the same rules. [any]
size_t rlhf__utf8_next(const char *s, size_t n, uint32_t *cp, size_t *bad);

// Writes n bytes in printable form to out[cap], NUL-terminated: controls and invalid UTF-8 become
// \n, \t, \r or \x1b, and "..." marks truncation. cap >= 16. Returns out. [any]
const char *rlhf__utf8_shown(const char *s, size_t n, char *out, size_t cap);

#endif
