// row_line.h: a line of a file of rows: blank, or a JSON value. Internal to data/.
#ifndef RLHF_HOST_DATA_ROW_LINE_H
#define RLHF_HOST_DATA_ROW_LINE_H

#include "base/error.h"

#include <jansson.h>

// 1 when there is nothing but white space. [any]
int rlhf__row_line_blank(rlhf_str line);

// 1 when it begins as a JSON row does: with `{"`, or with a brace alone, which is unlikely in a
// text. [any]
int rlhf__row_line_begins_object(rlhf_str line);

// Returns st; where that is RLHF_E_INVALID, err gets advice for piped text that looks like a JSON
// row. [any]
rlhf_status rlhf__row_line_hint_text(rlhf_status st, struct rlhf__error *err);

// RLHF_E_INVALID with file, line and byte when it is no UTF-8. [any]
rlhf_status rlhf__row_line_check(rlhf_str line, const char *path, int64_t number,
                                 struct rlhf__error *err);

// The object of a line that is UTF-8; caller owns *out. Errors: RLHF_E_INVALID (no JSON, a key that
// is there twice, no object), RLHF_E_NOMEM. [any]
rlhf_status rlhf__row_line_json(rlhf_str line, const char *path, int64_t number, json_t **out,
                                struct rlhf__error *err);

#endif
