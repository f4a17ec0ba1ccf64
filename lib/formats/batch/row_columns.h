// row_columns.h: the table of a batch's columns: its arrays with numbers for each row or each
// token. Whatever is done with every column is a loop over this table: rows.c allocates, copies,
// joins and frees them, and the functions below pass them to an algorithm. A new column is a member
// of struct rlhf__rows and a line of the table.
//
// Not in the table: `offset`, and the arrays that have entries for response tokens only.
#ifndef RLHF_LIB_FORMATS_BATCH_ROW_COLUMNS_H
#define RLHF_LIB_FORMATS_BATCH_ROW_COLUMNS_H

#include "batch/rows.h"

#include <string.h>

// What an algorithm must have planned to get a column.
enum rlhf__column_need {
    RLHF__NEEDS_REFERENCE = 1, // the reference's log-probs
    RLHF__NEEDS_VALUE = 2,     // the value head
    RLHF__NEEDS_DRAWN = 4      // for loss(): rows that a policy sampled (RLHF__DRAWN)
};

// Members that end in _at are offsets of pointers; 0: the struct lacks the column.
struct rlhf__row_column {
    const char *name;    // the member of struct rlhf__rows
    uint16_t rows_at;    // in struct rlhf__rows; the column has `repeat` pointers there
    uint16_t rollout_at; // in rlhf_rollout
    uint16_t result_at;  // in rlhf_advantages
    uint16_t loss_at;    // in rlhf_loss_in
    uint16_t width_at;   // in struct rlhf__rows: number of elements for each row or token; 0: one
    uint8_t size;        // bytes of an element
    uint8_t per_token;   // 1: for each token; 0: for each row
    uint8_t always;      // 1: every batch has the column; 0: the pointer may be NULL
    uint8_t repeat;      // number of arrays
    uint8_t needs;       // bits of enum rlhf__column_need
};

extern const struct rlhf__row_column rlhf__row_columns[];
extern const size_t rlhf__n_row_columns;

// Read or write pointer k (below `repeat`) of a column. [any]
static inline void *rlhf__row_column(const struct rlhf__rows *e, const struct rlhf__row_column *c,
                                     int k) {
    void *p;
    memcpy(&p, (const char *)e + c->rows_at + (size_t)k * sizeof p, sizeof p);
    return p;
}
static inline void rlhf__row_column_set(struct rlhf__rows *e, const struct rlhf__row_column *c,
                                        int k, void *p) {
    memcpy((char *)e + c->rows_at + (size_t)k * sizeof p, &p, sizeof p);
}

// Returns the bytes that the column has for each row or token of e. [any]
size_t rlhf__row_column_bytes(const struct rlhf__rows *e, const struct rlhf__row_column *c);

// Set every pointer of *out that is a column of e, for all rows. `has` are the bits of enum
// rlhf__column_need that are fulfilled. A column that the algorithm does not get stays NULL. [any]
void rlhf__columns_to_rollout(const struct rlhf__rows *e, uint32_t has, rlhf_rollout *out);
// Set every pointer of *out that is a column of e, and zero these columns. [any]
void rlhf__columns_to_results(struct rlhf__rows *e, rlhf_advantages *out);
// Like rlhf__columns_to_rollout, for the rows of e from `from` onward. [any]
void rlhf__columns_to_loss(const struct rlhf__rows *e, uint32_t from, uint32_t has,
                           rlhf_loss_in *out);

#endif
