// columns.h: text on a terminal: how wide it is and how to cut it.
#ifndef RLHF_HOST_COLUMNS_H
#define RLHF_HOST_COLUMNS_H

#include "base/buf.h"

// Columns of the terminal on file descriptor fd, `otherwise` when it is none. [any]
int rlhf__terminal_width(int fd, int otherwise);

// Append bytes as one line of at most `columns` columns: control characters and line breaks become
// spaces, what is no UTF-8 becomes U+FFFD, wide characters count 2; what does not fit ends in
// "...". Returns the columns used. [any]
int rlhf__put_clipped(struct rlhf__buf *out, rlhf_str text, int columns);

// How many bytes of text go on a line of `columns` columns, at least one character: all that fit,
// or fewer, up to a space, where the cut would split a word that begins in the second half. [any]
size_t rlhf__wrap_at(rlhf_str text, int columns);

// Append text in lines of at most `columns` columns, broken at blanks: the first has `used` columns
// taken already, the others begin with `indent` spaces. A word that is longer than a line stays
// whole. columns <= indent: one line. [any]
void rlhf__put_wrapped(struct rlhf__buf *out, rlhf_str text, int columns, int used, int indent);

#endif
