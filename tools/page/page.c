// page.c: see page.h.
#include "page/page.h"

#include "base/hash.h"
#include "base/printable.h"

#include <string.h>

struct rlhf__page_part {
    const char *name, *text;
    size_t len;
};

#include "page_parts.inc" // parts[]

// ---- escaping ----

void rlhf__page_put_json(struct rlhf__buf *out, const char *json, size_t n) {
    size_t from = 0;
    for (size_t i = 0; i < n; i++) {
        if (json[i] != '<' && json[i] != '>' && json[i] != '&') continue;
        rlhf__buf_put(out, json + from, i - from);
        rlhf__buf_printf(out, "\\u%04x", (unsigned)json[i]);
        from = i + 1;
    }
    rlhf__buf_put(out, json + from, n - from);
}

static const char *entity(uint32_t c) {
    switch (c) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

void rlhf__page_put_text(struct rlhf__buf *out, const char *bytes, size_t n) {
    for (size_t i = 0; i < n;) {
        uint32_t c = 0;
        const size_t len = rlhf__char_at(bytes + i, n - i, &c);
        const char *name = len ? entity(c) : NULL;
        if (!len)
            rlhf__buf_puts(out, "\xef\xbf\xbd");
        else if (name)
            rlhf__buf_puts(out, name);
        else
            rlhf__put_printable(out, bytes + i, len, "\n\t");
        i += len ? len : 1;
    }
}

// ---- style, scripts, and their hashes ----

static rlhf_status put_part(struct rlhf__buf *out, const char *name, struct rlhf__error *err) {
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(parts[i].name, name) == 0) {
            rlhf__buf_put(out, parts[i].text, parts[i].len);
            return RLHF_OK;
        }
    return rlhf__fail(err, RLHF_E_INVALID, "the program holds no page part named %s", name);
}

// Append the hash of the bytes in the form of a content policy: 'sha256-...', in base64 with
// padding.
static void put_digest(struct rlhf__buf *out, const struct rlhf__buf *text) {
    uint8_t d[32];
    struct rlhf__sha256 s;
    rlhf__sha256_init(&s);
    rlhf__sha256_put(&s, text->data, text->len);
    rlhf__sha256_finish(&s, d);
    rlhf__buf_puts(out, "'sha256-");
    rlhf__put_base64(out, d, sizeof d);
    rlhf__buf_putc(out, '\'');
}

// ---- the page ----

static const char start[] = "<!doctype html>\n<!-- made by rlhf-host -->\n";

int rlhf__page_is_ours(const char *text, size_t n) {
    return n >= sizeof start - 1 && memcmp(text, start, sizeof start - 1) == 0;
}

static void put_page(const struct rlhf__page *p, const struct rlhf__buf *style,
                     const struct rlhf__buf *script, struct rlhf__buf *out) {
    rlhf__buf_puts(out, start);
    rlhf__buf_puts(out, "<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
                        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
                        "'none'; script-src ");
    put_digest(out, script);
    rlhf__buf_puts(out, "; style-src ");
    put_digest(out, style);
    rlhf__buf_puts(out, "; base-uri 'none'; form-action 'none'\">\n"
                        "<meta name=\"viewport\" content=\"width=device-width, "
                        "initial-scale=1\">\n"
                        "<meta name=\"color-scheme\" content=\"light dark\">\n"
                        "<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
    rlhf__page_put_text(out, p->title, strlen(p->title));
    rlhf__buf_puts(out, "</title>\n<style>");
    rlhf__buf_put(out, style->data, style->len);
    rlhf__buf_puts(out, "</style>\n<noscript><p>This page is drawn by its own script. It contains "
                        "all its data and loads nothing.</p></noscript>\n<main id=\"page\"></main>"
                        "\n<script type=\"application/json\" id=\"data\">");
    rlhf__page_put_json(out, p->json, p->json_len);
    rlhf__buf_puts(out, "</script>\n<script>");
    rlhf__buf_put(out, script->data, script->len);
    rlhf__buf_puts(out, "</script>\n</html>\n");
}

rlhf_status rlhf__page_write(const struct rlhf__page *page, struct rlhf__buf *out,
                             struct rlhf__error *err) {
    struct rlhf__buf style = RLHF__BUF_INIT, script = RLHF__BUF_INIT;
    rlhf_status st = put_part(&style, page->style, err);
    for (size_t i = 0; st == RLHF_OK && i < page->n_scripts; i++)
        st = put_part(&script, page->scripts[i], err);
    if (st == RLHF_OK) st = rlhf__buf_ok(&style, err);
    if (st == RLHF_OK) st = rlhf__buf_ok(&script, err);
    if (st == RLHF_OK) put_page(page, &style, &script, out);
    if (st == RLHF_OK) st = rlhf__buf_ok(out, err);
    rlhf__buf_finish(&style);
    rlhf__buf_finish(&script);
    return st;
}
