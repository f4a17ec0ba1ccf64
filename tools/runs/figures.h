// figures.h: sizes, durations and dates as the tables of `runs` show them.
#ifndef RLHF_TOOLS_RUNS_FIGURES_H
#define RLHF_TOOLS_RUNS_FIGURES_H

#include "base/buf.h"

// "0", "4.1 K", "182 M", "1.2 G": units of 1,024 bytes. [any]
void rlhf__put_bytes(struct rlhf__buf *out, int64_t bytes);

// "0:09", "3:31", "2:05:11", "3 d 4:05". Nothing for a time that is not known (NaN). [any]
void rlhf__put_duration(struct rlhf__buf *out, double seconds);

// Append `when` (seconds since 1970) as local time: "today 10:51", "21 Nov" in the year of `now`,
// else "21 Nov 2025". Appends nothing for a time that is not known (NaN). [any]
void rlhf__put_when(struct rlhf__buf *out, double when, double now);

#endif
