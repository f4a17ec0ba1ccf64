// text_cell.h: turns a row of samples.jsonl into a cell of the report page, checked and shortened
// (texts.h).
#ifndef RLHF_FORMATS_HISTORY_TEXT_CELL_H
#define RLHF_FORMATS_HISTORY_TEXT_CELL_H

#include <jansson.h>

// Returns the cell of a row, a new reference. If the row does not have the form that the program
// writes, the cell has only the usable parts. [any]
json_t *rlhf__text_cell(const json_t *row);

#endif
