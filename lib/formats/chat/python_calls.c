// python_calls.c: see python_calls.h.
#include "chat/python_calls.h"

#include "base/json.h"
#include "text/unicode.h"

#include <string.h>

enum { DEPTH_MAX = 64 };

struct reader {
    const char *s;
    size_t n, at;
    struct rlhf__buf *out;
    int depth;
};

static int peek(const struct reader *r) { return r->at < r->n ? (unsigned char)r->s[r->at] : -1; }

static void skip_space(struct reader *r) {
    while (r->at < r->n && (r->s[r->at] == ' ' || (r->s[r->at] >= '\t' && r->s[r->at] <= '\r')))
        r->at++;
}

// Take the character c after white space. Returns 0 if another one is there.
static int take(struct reader *r, int c) {
    skip_space(r);
    if (peek(r) != c) return 0;
    r->at++;
    return 1;
}

// ---- texts ----

// Take the `digits` hexadecimal digits of an escape. Returns 0 if there are fewer.
static int take_hex(struct reader *r, int digits, uint32_t *out) {
    *out = 0;
    for (int i = 0; i < digits; i++, r->at++) {
        const int c = peek(r), letter = c | 0x20;
        if (c >= '0' && c <= '9')
            *out = *out << 4 | (uint32_t)(c - '0');
        else if (letter >= 'a' && letter <= 'f')
            *out = *out << 4 | (uint32_t)(letter - 'a' + 10);
        else
            return 0;
    }
    return 1;
}

// The rest of \xHH, \uHHHH or \UHHHHHHHH. JSON writes a character beyond 16 bits as two of \uHHHH.
static int put_code(struct reader *r, int letter, struct rlhf__buf *out) {
    uint32_t cp, low;
    if (!take_hex(r, letter == 'x' ? 2 : letter == 'u' ? 4 : 8, &cp)) return 0;
    if (cp >= 0xD800 && cp < 0xDC00) {
        if (peek(r) != '\\' || r->n - r->at < 2 || r->s[r->at + 1] != 'u') return 0;
        r->at += 2;
        if (!take_hex(r, 4, &low) || low < 0xDC00 || low > 0xDFFF) return 0;
        cp = 0x10000 + ((cp - 0xD800) << 10) + (low - 0xDC00);
    }
    if (cp > 0x10FFFF || (cp >= 0xD800 && cp < 0xE000)) return 0;
    char utf8[4];
    rlhf__buf_put(out, utf8, rlhf__utf8_put(cp, utf8));
    return 1;
}

// What follows a backslash. As in Python, an unknown escape is kept as it is.
static int put_escape(struct reader *r, struct rlhf__buf *out) {
    static const char letters[] = "ntrbfav\\'\"/", means[] = "\n\t\r\b\f\a\v\\'\"/";
    const int c = peek(r);
    if (c < 0) return 0;
    r->at++;
    if (c == 'x' || c == 'u' || c == 'U') return put_code(r, c, out);
    const char *at = c ? strchr(letters, c) : NULL;
    if (c == '\n') return 1; // the line goes on
    if (!at) rlhf__buf_putc(out, '\\');
    rlhf__buf_putc(out, at ? means[at - letters] : (char)c);
    return 1;
}

static int put_text(struct reader *r) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    const int quote = peek(r);
    int good = quote == '\'' || quote == '"', closed = 0;
    for (r->at++; good && !closed && r->at < r->n;) {
        const char c = r->s[r->at++];
        closed = c == quote;
        if (c == '\\')
            good = put_escape(r, &text);
        else if (!closed)
            rlhf__buf_putc(&text, c);
    }
    good = good && closed && rlhf__buf_ok(&text, NULL) == RLHF_OK;
    if (good) rlhf__json_write_string(r->out, rlhf__buf_text(&text), text.len);
    rlhf__buf_finish(&text);
    return good;
}

// ---- values ----

static int put_value(struct reader *r);

// The rest of a list, a tuple or a dictionary, after its opening bracket.
static int put_items(struct reader *r, int close) {
    const int named = close == '}';
    rlhf__buf_putc(r->out, named ? '{' : '[');
    if (++r->depth > DEPTH_MAX) return 0;
    for (int n = 0; !take(r, close); n++) {
        if (n && !take(r, ',')) return 0;
        if (n && take(r, close)) break; // a comma may end the list
        if (n) rlhf__buf_putc(r->out, ',');
        skip_space(r);
        if (named) {
            if (!put_text(r) || !take(r, ':')) return 0;
            rlhf__buf_putc(r->out, ':');
        }
        if (!put_value(r)) return 0;
    }
    r->depth--;
    rlhf__buf_putc(r->out, named ? '}' : ']');
    return 1;
}

static int is_in_word(int c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '+' || c == '-' || c == '_';
}

// A number, True, False or None.
static int put_word(struct reader *r) {
    static const char *const words[][2] = {{"True", "true"}, {"False", "false"}, {"None", "null"}};
    const size_t from = r->at;
    while (is_in_word(peek(r)))
        r->at++;
    const size_t n = r->at - from;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i][0]) == n && memcmp(words[i][0], r->s + from, n) == 0) {
            rlhf__buf_puts(r->out, words[i][1]);
            return 1;
        }
    rlhf__buf_put(r->out, r->s + from, n);
    return n > 0;
}

static int put_value(struct reader *r) {
    skip_space(r);
    if (peek(r) == '\'' || peek(r) == '"') return put_text(r);
    if (take(r, '[')) return put_items(r, ']');
    if (take(r, '(')) return put_items(r, ')');
    if (take(r, '{')) return put_items(r, '}');
    return put_word(r);
}

// ---- calls ----

// Append what is before the character `end` as a JSON string, without the white space around it,
// and move past `end`.
static int put_name(struct reader *r, int end) {
    static const char outside[] = "()[]{}=,'\":";
    skip_space(r);
    const size_t from = r->at;
    while (peek(r) > ' ' && !strchr(outside, peek(r)))
        r->at++;
    const size_t n = r->at - from;
    if (!n || !take(r, end)) return 0;
    rlhf__json_write_string(r->out, r->s + from, n);
    return 1;
}

static int put_call(struct reader *r) {
    rlhf__buf_puts(r->out, "{\"name\":");
    if (!put_name(r, '(')) return 0;
    rlhf__buf_puts(r->out, ",\"arguments\":{");
    for (int n = 0; !take(r, ')'); n++) {
        if (n && !take(r, ',')) return 0;
        if (n && take(r, ')')) break;
        if (n) rlhf__buf_putc(r->out, ',');
        if (!put_name(r, '=')) return 0;
        rlhf__buf_putc(r->out, ':');
        if (!put_value(r)) return 0;
    }
    rlhf__buf_puts(r->out, "}}");
    return 1;
}

size_t rlhf__python_calls_json(const char *s, size_t n, struct rlhf__buf *out) {
    struct reader r = {.s = s, .n = n, .out = out};
    if (!take(&r, '[')) return 0;
    rlhf__buf_putc(out, '[');
    for (int i = 0; !take(&r, ']'); i++) {
        if (i && !take(&r, ',')) return 0;
        if (i && take(&r, ']')) break;
        if (i) rlhf__buf_putc(out, ',');
        skip_space(&r);
        if (peek(&r) == '{' ? !put_value(&r) : !put_call(&r)) return 0;
    }
    rlhf__buf_putc(out, ']');
    return r.at;
}
