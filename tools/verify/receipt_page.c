// receipt_page.c: see receipt_page.h.
#include "verify/receipt_page.h"

#include "base/json.h"
#include "history/chain_file.h"
#include "page/page.h"

#include <string.h>

static const char head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
    "style-src 'unsafe-inline'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n<title>Receipt</title>\n<style>\n"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}\n"
    "table{border-collapse:collapse;width:100%}\n"
    "td,th{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid #8884;"
    "overflow-wrap:anywhere}\n"
    ".yes{color:#137333}.no{color:#b3261e}\n"
    "@media(prefers-color-scheme:dark){body{background:#16181c;color:#e6e6e6}"
    ".yes{color:#7fd18b}.no{color:#ff8a80}}\n"
    "</style>\n</head>\n<body>\n";

static void put_text(struct rlhf__buf *out, const char *text) {
    rlhf__page_put_text(out, text, strlen(text));
}

static void put_row(struct rlhf__buf *out, const char *what, const char *value) {
    rlhf__buf_puts(out, "<tr><th>");
    put_text(out, what);
    rlhf__buf_puts(out, "</th><td>");
    put_text(out, value);
    rlhf__buf_puts(out, "</td></tr>\n");
}

static void put_value(struct rlhf__buf *out, const char *what, const json_t *v) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (json_is_string(v))
        rlhf__buf_puts(&text, json_string_value(v));
    else if (v)
        rlhf__json_write(&text, v, 0);
    put_row(out, what, text.len > 0 ? rlhf__buf_text(&text) : "none");
    rlhf__buf_finish(&text);
}

static void put_object(struct rlhf__buf *out, const char *title, const json_t *v) {
    const char *key;
    json_t *x;
    rlhf__buf_puts(out, "<h2>");
    put_text(out, title);
    rlhf__buf_puts(out, "</h2>\n<table>\n");
    json_object_foreach((json_t *)(uintptr_t)v, key, x) put_value(out, key, x);
    rlhf__buf_puts(out, "</table>\n");
}

static long long number(const json_t *v, const char *key) {
    return (long long)json_integer_value(json_object_get(v, key));
}

void rlhf__receipt_verdict(const json_t *receipt, char out[RLHF__VERDICT]) {
    const json_t *p = json_object_get(receipt, "phases");
    const long long all = number(p, "run"), done = number(p, "recomputed");
    const int limits = strcmp(rlhf__json_text_in(receipt, "proof"), "limits") == 0;
    const char *same = limits ? "equal within the limits" : "equal to the bit";
    if (json_is_false(json_object_get(receipt, "equal")))
        snprintf(out, RLHF__VERDICT, "differs");
    else if (done == 0)
        snprintf(out, RLHF__VERDICT, "has the files of its hash chain; no phase was recomputed");
    else if (done < all)
        snprintf(out, RLHF__VERDICT, "has %lld of %lld phases that were recomputed and are %s",
                 done, all, same);
    else
        snprintf(out, RLHF__VERDICT, "is %s", same);
}

static void put_verdict(struct rlhf__buf *out, const json_t *receipt) {
    const json_t *phases = json_object_get(receipt, "phases");
    const json_t *equal = json_object_get(receipt, "equal");
    const long long done = number(phases, "recomputed");
    char verdict[RLHF__VERDICT];
    rlhf__receipt_verdict(receipt, verdict);
    rlhf__buf_printf(out, "<h1>Receipt: the run <span class=\"%s\">%s</span></h1>\n<p>",
                     json_is_true(equal)    ? "yes"
                     : json_is_false(equal) ? "no"
                                            : "unknown",
                     verdict);
    if (done > 0)
        rlhf__buf_printf(out,
                         "%lld of the run's %lld phases were recomputed; %lld of them are equal.",
                         done, number(phases, "run"), number(phases, "equal"));
    else
        rlhf__buf_puts(out, "No phase was recomputed: the files were compared with their digests.");
    if (*rlhf__json_text_in(receipt, "not_recomputed")) {
        rlhf__buf_puts(out, " Not verified: ");
        put_text(out, rlhf__json_text_in(receipt, "not_recomputed"));
        rlhf__buf_putc(out, '.');
    }
    if (number(phases, "rewards_on_trust") > 0)
        rlhf__buf_printf(out, " The rewards of %lld phases were taken on trust.",
                         number(phases, "rewards_on_trust"));
    if (number(phases, "environment_on_trust") > 0)
        rlhf__buf_printf(out, " The environment's answers in %lld phases were taken on trust.",
                         number(phases, "environment_on_trust"));
    rlhf__buf_puts(out, "</p>\n");
}

static void put_faults(struct rlhf__buf *out, const json_t *receipt) {
    static const char *const keys[] = {"file", "where", "was", "expected"};
    const json_t *list = json_object_get(receipt, "faults");
    size_t i;
    json_t *f;
    if (json_array_size(list) == 0) return;
    rlhf__buf_puts(out, "<h2>What differs</h2>\n<table>\n<tr><th>phase</th><th>file</th>"
                        "<th>where</th><th>in the run</th><th>expected</th></tr>\n");
    json_array_foreach(list, i, f) {
        rlhf__buf_printf(out, "<tr><td>%lld</td>", number(f, "phase"));
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            rlhf__buf_puts(out, "<td>");
            put_text(out, rlhf__json_text_in(f, keys[k]));
            rlhf__buf_puts(out, "</td>");
        }
        rlhf__buf_puts(out, "</tr>\n");
    }
    rlhf__buf_puts(out, "</table>\n");
}

void rlhf__receipt_page(const json_t *receipt, struct rlhf__buf *out) {
    static const char *const keys[] = {"run",
                                       "proof",
                                       "arithmetic",
                                       "dtype",
                                       "version",
                                       "begin",
                                       "head",
                                       "seal",
                                       "rewards_on_trust",
                                       "environment_on_trust",
                                       "sha256"};
    struct rlhf__buf json = RLHF__BUF_INIT;
    rlhf__buf_puts(out, head);
    put_verdict(out, receipt);
    put_faults(out, receipt);
    rlhf__buf_puts(out, "<h2>The run</h2>\n<table>\n");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        put_value(out, keys[i], json_object_get(receipt, keys[i]));
    rlhf__buf_puts(out, "</table>\n");
    put_object(out, "Phases", json_object_get(receipt, "phases"));
    put_object(out, "Made by", json_object_get(receipt, "made"));
    put_object(out, "Verified by", json_object_get(receipt, "verified"));
    rlhf__json_write(&json, receipt, 0);
    rlhf__buf_puts(out, RLHF__RECEIPT_SCRIPT);
    rlhf__page_put_json(out, rlhf__buf_text(&json), json.len);
    rlhf__buf_puts(out, "</script>\n</body>\n</html>\n");
    rlhf__buf_finish(&json);
}
