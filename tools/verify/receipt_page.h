// receipt_page.h: a receipt as a page.
#ifndef RLHF_TOOLS_VERIFY_RECEIPT_PAGE_H
#define RLHF_TOOLS_VERIFY_RECEIPT_PAGE_H

#include "base/buf.h"

#include <jansson.h>

// The text before the receipt's JSON in the page.
#define RLHF__RECEIPT_SCRIPT "<script type=\"application/json\" id=\"receipt\">"

// Append the page. It loads nothing and runs nothing. [main]
void rlhf__receipt_page(const json_t *receipt, struct rlhf__buf *out);

enum { RLHF__VERDICT = 160 };

// Writes the receipt's verdict as the end of a sentence that begins with "the run", e.g. "is equal
// to the bit", "is equal within the limits", "differs" or "has 3 of 120 phases that were recomputed
// and are equal to the bit". [any]
void rlhf__receipt_verdict(const json_t *receipt, char out[RLHF__VERDICT]);

#endif
