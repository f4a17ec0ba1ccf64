// page.h: writes a self-contained HTML page, i.e. style, scripts and data in a single file that
// loads nothing.
//
// The page's content policy allows only the page's style and script, by their SHA-256. Data is JSON
// in a <script type="application/json">. The scripts put texts of the data into the page only as
// text nodes, so texts of a run never become markup.
#ifndef RLHF_TOOLS_PAGE_PAGE_H
#define RLHF_TOOLS_PAGE_PAGE_H

#include "base/buf.h"

struct rlhf__page {
    const char *title;    // any bytes
    const char *style;    // a file of tools/page/assets: "page.css"
    const char **scripts; // [n_scripts] likewise, joined in this order
    size_t n_scripts;
    const char *json; // [json_len] the data: valid JSON in UTF-8
    size_t json_len;
};

// Append the page to `out`. Errors: RLHF_E_INVALID if the program lacks a style or script of that
// name, RLHF_E_NOMEM. [any]
rlhf_status rlhf__page_write(const struct rlhf__page *page, struct rlhf__buf *out,
                             struct rlhf__error *err);

// Returns 1 if the text begins like a page of this program. [any]
int rlhf__page_is_ours(const char *text, size_t n);

// Append JSON in a form that is safe inside <script>: <, > and &, which occur only in strings,
// become \u003c, \u003e and \u0026. [any]
void rlhf__page_put_json(struct rlhf__buf *out, const char *json, size_t n);

// Append bytes as text of an element or a quoted attribute. Invalid UTF-8 becomes U+FFFD. Escapes
// control characters, invisible characters, and characters that change the direction of text
// (printable.h). [any]
void rlhf__page_put_text(struct rlhf__buf *out, const char *bytes, size_t n);

#endif
