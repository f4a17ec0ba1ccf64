// printable.h: foreign text (from models, data, plugins, files) made safe for terminals and logs:
// control characters are escaped, and lines are cut or wrapped to the terminal's width.
//
// Escapes: \n, \t, \r, \x1b for controls (C0, DEL and C1) and for invalid UTF-8; \u202e and
// \U000e0001 for formatting characters (bidi overrides and marks, zero-width ones, line and
// paragraph separators, tags). A backslash stays as it is: the form is for reading, not for reading
// back.
#ifndef RLHF_HOST_PRINTABLE_H
#define RLHF_HOST_PRINTABLE_H

#include "base/buf.h"

#include <rlhf/base.h>

// Length of the UTF-8 character at p (n >= 1 bytes), *c = its code point; 0 when it is invalid
// (also overlong, surrogate and out-of-range forms). [any]
size_t rlhf__char_at(const char *p, size_t n, uint32_t *c);

// 1 when code point c may be shown unescaped. [any]
int rlhf__is_printable(uint32_t c);

// Append n bytes as described. keep: control characters that stay as they are, "" for one line,
// "\n\t" for text of several lines. [any]
void rlhf__put_printable(struct rlhf__buf *out, const char *s, size_t n, const char *keep);

// The same into out[cap], NUL-ended and cut to fit; allocates nothing. Returns out.
// [any]
const char *rlhf__printable(const char *s, char *out, size_t cap);

// Append s as one shell word: in single quotes if it contains anything but letters, digits and
// ._/+=@%:,- [any]
void rlhf__put_shell(struct rlhf__buf *out, const char *s);

// ---- columns ----

// Columns of the terminal on file descriptor fd; returns `otherwise` when fd is not a terminal.
// [any]
int rlhf__terminal_width(int fd, int otherwise);

// Append bytes as one line of at most `columns` columns: control characters and line breaks become
// spaces, invalid UTF-8 becomes U+FFFD, wide characters count 2; a longer text is cut and ends in
// "...". Returns the columns used. [any]
int rlhf__put_clipped(struct rlhf__buf *out, rlhf_str text, int columns);

// How many bytes of text go on a line of `columns` columns, at least one character: all that fit,
// or fewer, up to a space, where the cut would split a word that begins in the second half. [any]
size_t rlhf__wrap_at(rlhf_str text, int columns);

// Append text in lines of at most `columns` columns, broken at blanks: the first line has `used`
// columns already, the others begin with `indent` spaces. A word longer than a line stays whole.
// columns <= indent: one line. [any]
void rlhf__put_wrapped(struct rlhf__buf *out, rlhf_str text, int columns, int used, int indent);

#endif
