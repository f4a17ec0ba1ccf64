// page.h: one self-contained HTML page: style, scripts and data in a single file that loads
// nothing.
//
// The page's content policy allows its own style and script by their SHA-256 and nothing else. Data
// is JSON in a <script type="application/json">, and the scripts put its texts into the page as
// text nodes only. So texts of a run never become markup.
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

// Append the page to `out`. Errors: RLHF_E_INVALID if a style or script is not among the program's
// own files, RLHF_E_NOMEM. [any]
rlhf_status rlhf__page_write(const struct rlhf__page *page, struct rlhf__buf *out,
                             struct rlhf__error *err);

// 1 if the text begins as a page of this program does. [any]
int rlhf__page_is_ours(const char *text, size_t n);

// Append JSON so that it may stand inside <script>. The characters <, > and &, which occur only in
// strings of JSON, are written as \u003c, \u003e and \u0026. [any]
void rlhf__page_put_json(struct rlhf__buf *out, const char *json, size_t n);

// Append bytes as text of an element or a quoted attribute. Invalid UTF-8 becomes U+FFFD. Control
// characters, and those that are invisible or turn a text's direction, are escaped (printable.h).
// [any]
void rlhf__page_put_text(struct rlhf__buf *out, const char *bytes, size_t n);

#endif
