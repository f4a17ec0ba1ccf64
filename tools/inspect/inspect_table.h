// inspect_table.h: a subject as text for the terminal.
#ifndef RLHF_TOOLS_INSPECT_INSPECT_TABLE_H
#define RLHF_TOOLS_INSPECT_INSPECT_TABLE_H

#include "inspect/subject.h"

// Print what the page shows for the last token of the prompt. [main]
rlhf_status rlhf__subject_print(const struct rlhf__subject *s, struct rlhf__error *err);

#endif
