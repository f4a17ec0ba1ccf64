// completion_row.h: a row that is a prompt and a completion, as TRL has it for supervised training:
// two texts, or two lists of messages. Internal to data/.
#ifndef RLHF_HOST_DATA_COMPLETION_ROW_H
#define RLHF_HOST_DATA_COMPLETION_ROW_H

#include "base/error.h"

#include <jansson.h>

struct rlhf__completion_row {
    rlhf_str prompt, completion; // texts, borrowed from the row
    char *messages;              // instead: both as one list, JSON; the caller frees it
    int32_t asked, reserved;     // how many of these are the prompt's
};

// Errors: RLHF_E_INVALID names the field, RLHF_E_NOMEM. [any]
rlhf_status rlhf__completion_row_read(const json_t *row, struct rlhf__completion_row *out,
                                      struct rlhf__error *err);

// How to convert a row of another tool's format (Alpaca, ShareGPT), as the end of a message; "" for
// any other row. [any]
const char *rlhf__completion_row_hint(const json_t *row);

#endif
