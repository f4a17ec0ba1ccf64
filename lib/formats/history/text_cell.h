// text_cell.h: makes a cell of the report page (texts.h) from a row of samples.jsonl. The row is
// checked and its texts are shortened.
#ifndef RLHF_FORMATS_HISTORY_TEXT_CELL_H
#define RLHF_FORMATS_HISTORY_TEXT_CELL_H

#include <jansson.h>

// Returns the cell of a row, a new reference. If the row does not have the form that the program
// writes, the cell has only the usable parts. [any]
json_t *rlhf__text_cell(const json_t *row);

#endif
