// figures.h: sizes, durations and dates as the tables of `runs` show them.
#ifndef RLHF_TOOLS_RUNS_FIGURES_H
#define RLHF_TOOLS_RUNS_FIGURES_H

#include "base/buf.h"

// Append a number of bytes, e.g. "0", "4.1 K", "182 M" or "1.2 G". The units are powers of 1,024.
// [any]
void rlhf__put_bytes(struct rlhf__buf *out, int64_t bytes);

// Append a duration, e.g. "0:09", "3:31", "2:05:11" or "3 d 4:05". Appends nothing if it is not
// known (NaN). [any]
void rlhf__put_duration(struct rlhf__buf *out, double seconds);

// Append `when` (seconds since 1970) as local time: "today 10:51", "21 Nov" in the year of `now`,
// else "21 Nov 2025". Appends nothing if the time is not known (NaN). [any]
void rlhf__put_when(struct rlhf__buf *out, double when, double now);

#endif
