// printable.h: foreign text (of models, data, plugins, files) as a terminal and a log may get it.
//
// What is no character to look at is spelt out: \n, \t, \r, \x1b for controls (C0, DEL and C1) and
// for bytes that are no UTF-8, \u202e and \U000e0001 for formatting characters (bidi overrides and
// marks, zero-width ones, line and paragraph separators, tags). A backslash stays as it is: the
// form is for reading, not for reading back.
#ifndef RLHF_HOST_PRINTABLE_H
#define RLHF_HOST_PRINTABLE_H

#include "base/buf.h"

#include <rlhf/base.h>

// Length of the UTF-8 character at p (n >= 1 bytes), *c = its code point; 0 when it is none
// (overlong, surrogate and out-of-range forms included). [any]
size_t rlhf__char_at(const char *p, size_t n, uint32_t *c);

// 1 when code point c may be shown as it is. [any]
int rlhf__is_printable(uint32_t c);

// Append n bytes as described. keep: control characters that stay as they are, "" for one line,
// "\n\t" for text of several lines. [any]
void rlhf__put_printable(struct rlhf__buf *out, const char *s, size_t n, const char *keep);

// The same into out[cap], NUL-ended, what does not fit left out; needs no memory. Returns out.
// [any]
const char *rlhf__printable(const char *s, char *out, size_t cap);

// Append s as one shell word: in single quotes if it contains anything but letters, digits and
// ._/+=@%:,- [any]
void rlhf__put_shell(struct rlhf__buf *out, const char *s);

#endif
