// columns.h: a table of texts in aligned columns. On a narrow terminal columns are dropped from the
// right.
#ifndef RLHF_TOOLS_RUNS_COLUMNS_H
#define RLHF_TOOLS_RUNS_COLUMNS_H

#include "base/buf.h"

enum { RLHF__TEXT_TABLE_COLUMNS = 32 };

struct rlhf__text_table_column {
    const char *title; // borrowed; "" for none
    int32_t right;     // 1: aligned to the right
};

// Zero-initialize and set the columns; release with rlhf__text_table_finish. After a failed
// allocation, text.bad is set.
struct rlhf__text_table {
    struct rlhf__text_table_column column[RLHF__TEXT_TABLE_COLUMNS];
    size_t n_columns;
    struct rlhf__buf text; // the cells, row by row, each ended by a NUL
    size_t n_cells;
};

void rlhf__text_table_finish(struct rlhf__text_table *); // accepts a zeroed one [any]

// Append the next cell. The text need not be trusted, because control characters are escaped
// (printable.h). [any]
void rlhf__text_table_cell(struct rlhf__text_table *, const char *text);

// Append a cell with the text of a buffer, and clear the buffer. [any]
void rlhf__text_table_take(struct rlhf__text_table *, struct rlhf__buf *text);

// Append the lines of the table: a line of titles, unless all are empty, and one line for each
// complete row. If `width` is above 0, lines are at most that wide: columns are dropped from the
// right until the others fit, and if even the first column does not fit, it is cut. Returns how
// many columns are left. [any]
size_t rlhf__text_table_put(const struct rlhf__text_table *, int width, struct rlhf__buf *out);

#endif
