// kinds.h: files that hold rows in a form that is not read, told by their names.
#ifndef RLHF_HOST_DATA_KINDS_H
#define RLHF_HOST_DATA_KINDS_H

#include "base/error.h"

// Errors: RLHF_E_UNSUPPORTED when path is a CSV, Parquet, ... file, with what to do instead. [any]
rlhf_status rlhf__data_kind_check(const char *path, struct rlhf__error *err);

// 1 when the name says that each line is a text rather than JSON: .txt or .txt.gz. [any]
int rlhf__data_is_text(const char *path);

// RLHF_E_INVALID for a .json file that begins with this byte when that makes it one list rather
// than rows. [any]
rlhf_status rlhf__data_begin_check(const char *path, int first, struct rlhf__error *err);

#endif
