// text_cell.h: a row of samples.jsonl as a cell of the page, checked and shortened (texts.h).
#ifndef RLHF_FORMATS_HISTORY_TEXT_CELL_H
#define RLHF_FORMATS_HISTORY_TEXT_CELL_H

#include <jansson.h>

// New reference. A row that is not as the program writes it gives what can be used. [any]
json_t *rlhf__text_cell(const json_t *row);

#endif
