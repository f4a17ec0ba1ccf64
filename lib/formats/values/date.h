// date.h: the date that a run gives to its chat template, and its forms as text.
//
// It does not read a clock.
#ifndef RLHF_FORMATS_VALUES_DATE_H
#define RLHF_FORMATS_VALUES_DATE_H

#include "base/buf.h"

// Check that a text is a date of the calendar, as 2026-11-28. Errors: RLHF_E_INVALID. [any]
rlhf_status rlhf__date_check(const char *text, struct rlhf__error *err);

// Append Python's date.strftime(format) of the beginning of this day. Returns 0, with nothing
// useful in *out, if the format has a directive that is not supported. [any]
int rlhf__date_put(const char *date, rlhf_str format, struct rlhf__buf *out);

#endif
