// printable.h: makes foreign text (from models, data, plugins, files) safe for terminals and logs.
// Control characters are escaped, and lines are cut or wrapped to the terminal's width.
//
// The escapes are:
//   \n \t \r             these three controls
//   \x1b ...             other controls (C0, DEL and C1) and invalid UTF-8
//   \u202e \U000e0001    formatting characters: bidi overrides and marks, zero-width characters,
//                        line and paragraph separators, tags
// A backslash is not escaped, so programs must not parse the result: it is only for people.
#ifndef RLHF_CORE_BASE_PRINTABLE_H
#define RLHF_CORE_BASE_PRINTABLE_H

#include "base/buf.h"

#include <rlhf/base.h>
#include <stdio.h>

// Returns the length of the UTF-8 character at `p` and sets *c to its code point. `p` points to at
// least one byte, and `n` is the number of bytes there. Returns 0 if the character is invalid: an
// overlong form, a surrogate, a value out of range, and so on. [any]
size_t rlhf__char_at(const char *p, size_t n, uint32_t *c);

// Returns the last offset, at most `n`, where UTF-8 text can be cut without splitting a character.
// The function reads text[n], which may be the final NUL. Invalid UTF-8 is cut at `n`. [any]
size_t rlhf__utf8_floor(const char *text, size_t n);

// Returns 1 if the code point `c` may be shown unescaped. [any]
int rlhf__is_printable(uint32_t c);

// Append `n` bytes, escaped as described above. The control characters in `keep` are not escaped:
// pass "" for a single line, "\n\t" for text of several lines. [any]
void rlhf__put_printable(struct rlhf__buf *out, const char *s, size_t n, const char *keep);

// Write `s` to out[cap], escaped as described above, NUL-ended and cut to fit. Allocates nothing.
// Returns `out`. [any]
const char *rlhf__printable(const char *s, char *out, size_t cap);

// Append `s` as one shell word. The word gets single quotes if it is empty or contains any
// character other than letters, digits and ._/+=@%:,- [any]
void rlhf__put_shell(struct rlhf__buf *out, const char *s);

// ---- columns ----

// Returns the number of columns of the terminal on file descriptor `fd`. If `fd` is not a terminal,
// returns `otherwise`. [any]
int rlhf__terminal_width(int fd, int otherwise);

// Append bytes as one line that is at most `columns` wide. Control characters and line breaks
// become spaces, invalid UTF-8 becomes U+FFFD, and a wide character takes 2 columns. A longer text
// is cut and, if `columns` is at least 3, ends in "...". Returns the number of columns of the line.
// [any]
int rlhf__put_clipped(struct rlhf__buf *out, rlhf_str text, int columns);

// Returns how many bytes of the text fit on a line that is `columns` wide, but at least the length
// of the first character. A line that would end inside a word ends after the last space before that
// word instead, provided that this space is in the second half of the line. [any]
size_t rlhf__wrap_at(rlhf_str text, int columns);

// Append `text` in lines that are at most `columns` wide, broken at spaces. On the first line,
// `used` columns are already taken. The other lines are indented by `indent` columns. A word longer
// than a line is not broken. If `columns` is not greater than `indent`, the text becomes one line.
// [any]
void rlhf__put_wrapped(struct rlhf__buf *out, rlhf_str text, int columns, int used, int indent);

// Append lines of text, each wrapped at `columns`. The further lines of a line are indented as the
// line itself. If `columns` is 0, the text is appended as it is. [any]
void rlhf__put_page(struct rlhf__buf *out, rlhf_str text, int columns);

// The same for lines with two columns, such as flags and their meanings. The second column begins
// after the first gap of two spaces or more. It is wrapped within itself, or, if it would be
// narrow, below the first one. [any]
void rlhf__put_two_columns(struct rlhf__buf *out, rlhf_str text, int columns);

// Returns the width of pages of help: that of the terminal or, if `to` is a file or a pipe, the
// environment variable COLUMNS, or 0. [main]
int rlhf__page_width(FILE *to);

// Print lines as rlhf__put_two_columns makes them, at rlhf__page_width. [main]
void rlhf__print_two_columns(FILE *to, const char *text);

#endif
