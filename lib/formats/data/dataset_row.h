// dataset_row.h: reads two parts of a dataset's row. The first part is a prompt with a completion,
// in TRL's format for supervised training: two strings, or two lists of messages. The second part
// is the label: an integer, or one of the model's label names.
//
// It does not read files (dataset.c does). Internal to data/.
#ifndef RLHF_FORMATS_DATA_DATASET_ROW_H
#define RLHF_FORMATS_DATA_DATASET_ROW_H

#include "base/error.h"
#include "data/dataset.h"

#include <jansson.h>

struct rlhf__completion_row {
    rlhf_str prompt, completion; // texts, borrowed from the row
    char *messages; // or the prompt and the completion as one JSON list; the caller frees it
    int32_t asked;  // the number of messages in the prompt
};

// Read the prompt and the completion. Errors: RLHF_E_INVALID (the message names the field),
// RLHF_E_NOMEM. [any]
rlhf_status rlhf__completion_row_read(const json_t *row, struct rlhf__completion_row *out,
                                      struct rlhf__error *err);

// If the row is in another tool's format (Alpaca, ShareGPT), returns a hint that tells how to
// convert the row, for the end of an error message. For other rows, returns "". [any]
const char *rlhf__completion_row_hint(const json_t *row);

// Read the label from v, the value of the field `name`. Errors: RLHF_E_INVALID (wrong type, out of
// range, or not a label of the model), with a message that lacks the file and the line. [any]
rlhf_status rlhf__row_label_read(const struct rlhf__dataset_opts *opts, const char *name,
                                 const json_t *v, int32_t *out, struct rlhf__error *err);

#endif
