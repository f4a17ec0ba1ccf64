// jinja_lex.c: see jinja_lex.h.
#include "chat/jinja_lex.h"

#include "base/printable.h"
#include "chat/jinja_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS_MAX = 1 << 17 };

struct lexer {
    const char *s; // the text; its lines end with \n
    size_t n, at;
    int32_t line, braces; // braces: how many { are open inside of a tag
    struct rlhf__jinja_work *w;
    struct rlhf__jinja_tokens *out;
    struct rlhf__error *err;
};

#define UNKNOWN(x, ...)                                                                            \
    (rlhf__fail((x)->err, RLHF_E_UNSUPPORTED, "line %d: " __VA_ARGS__), RLHF_E_UNSUPPORTED)

static rlhf_status no_memory(struct rlhf__error *err) {
    return RLHF__NOMEM(err, "out of memory for a chat template");
}

void rlhf__jinja_tokens_finish(struct rlhf__jinja_tokens *t) {
    free(t->item);
    *t = (struct rlhf__jinja_tokens){0};
}

static rlhf_status push(struct lexer *x, int32_t kind, const char *op, rlhf__value value) {
    struct rlhf__jinja_tokens *t = x->out;
    if (t->n == TOKENS_MAX) return UNKNOWN(x, "more than %d tokens", x->line, TOKENS_MAX);
    if (t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 256;
        struct rlhf__jinja_token *grown = realloc(t->item, cap * sizeof *grown);
        if (!grown) return no_memory(x->err);
        t->item = grown;
        t->cap = cap;
    }
    struct rlhf__jinja_token *k = &t->item[t->n++];
    *k = (struct rlhf__jinja_token){.kind = kind, .line = x->line, .value = value};
    if (op) snprintf(k->op, sizeof k->op, "%s", op);
    return RLHF_OK;
}

static rlhf_status push_sign(struct lexer *x, int32_t kind, const char *op) {
    return push(x, kind, op, rlhf__jinja_undefined());
}

static int is_utf8(const char *s, size_t n) {
    for (size_t at = 0, size; at < n; at += size) {
        uint32_t c;
        if ((size = rlhf__char_at(s + at, n - at, &c)) == 0) return 0;
    }
    return 1;
}

static rlhf_status push_text(struct lexer *x, int32_t kind, const char *s, size_t n) {
    if (!is_utf8(s, n)) return UNKNOWN(x, "no UTF-8", x->line);
    return push(x, kind, NULL, rlhf__jinja_str((rlhf_str){s, n}));
}

static int begins(const struct lexer *x, const char *what) {
    size_t n = strlen(what);
    return x->n - x->at >= n && memcmp(x->s + x->at, what, n) == 0;
}

static void step(struct lexer *x, size_t n) {
    for (; n && x->at < x->n; n--)
        if (x->s[x->at++] == '\n') x->line++;
}

// Skips white space after a tag. If the tag ends with "-" (`minus` is 1), skips all white space up
// to the next text. Otherwise skips at most one line end, and only if `trim` is set.
static void step_behind(struct lexer *x, int minus, int trim) {
    if (minus) {
        rlhf_str rest = rlhf__space_trim((rlhf_str){x->s + x->at, x->n - x->at}, 1, 0);
        step(x, (size_t)(rest.ptr - (x->s + x->at)));
    } else if (trim && x->at < x->n && x->s[x->at] == '\n') {
        step(x, 1);
    }
}

// ---- inside of tags ----

static int is_word(int c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static int hex(const char *s, size_t n, uint32_t *out) {
    *out = 0;
    for (size_t i = 0; i < n; i++) {
        const char *digits = "0123456789abcdef", *d = s[i] ? strchr(digits, s[i] | 0x20) : NULL;
        if (!d) return 0;
        *out = *out * 16 + (uint32_t)(d - digits);
    }
    return 1;
}

static void put_code(struct rlhf__buf *b, uint32_t c) {
    if (c < 0x80) {
        rlhf__buf_putc(b, (char)c);
    } else if (c < 0x800) {
        rlhf__buf_putc(b, (char)(0xc0 | c >> 6));
        rlhf__buf_putc(b, (char)(0x80 | (c & 63)));
    } else {
        rlhf__buf_putc(b, (char)(0xe0 | c >> 12));
        rlhf__buf_putc(b, (char)(0x80 | (c >> 6 & 63)));
        rlhf__buf_putc(b, (char)(0x80 | (c & 63)));
    }
}

// Append the character that an escape sequence stands for. s[0..n) is the text after the backslash.
// Returns the number of bytes used, or 0 if the sequence is unknown.
static size_t put_escape(struct rlhf__buf *b, const char *s, size_t n) {
    static const char from[] = "ntr\\'\"bfav", to[] = "\n\t\r\\'\"\b\f\a\v";
    const char *known = n && s[0] ? strchr(from, s[0]) : NULL;
    uint32_t c;
    if (known) {
        rlhf__buf_putc(b, to[known - from]);
        return 1;
    }
    size_t digits = n && s[0] == 'x' ? 2 : n && s[0] == 'u' ? 4 : 0;
    if (!digits || n < digits + 1 || !hex(s + 1, digits, &c) || c == 0 ||
        (c >= 0xd800 && c <= 0xdfff))
        return 0;
    put_code(b, c);
    return digits + 1;
}

static rlhf_status lex_string(struct lexer *x) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    char quote = x->s[x->at];
    rlhf_status st = RLHF_OK;
    step(x, 1);
    while (st == RLHF_OK && x->at < x->n && x->s[x->at] != quote) {
        size_t used = 1;
        if (x->s[x->at] != '\\')
            rlhf__buf_putc(&b, x->s[x->at]);
        else if ((used = put_escape(&b, x->s + x->at + 1, x->n - x->at - 1)) == 0)
            st = UNKNOWN(x, "an escape in a string that is not known", x->line);
        else
            used++;
        step(x, used);
    }
    if (st == RLHF_OK && x->at == x->n) st = UNKNOWN(x, "a string that does not end", x->line);
    if (st == RLHF_OK) st = rlhf__buf_ok(&b, x->err);
    if (st == RLHF_OK) {
        const rlhf__value v = rlhf__jinja_copied(x->w, rlhf__buf_text(&b), b.len);
        step(x, 1);
        st = x->w->state ? no_memory(x->err)
                         : push_text(x, RLHF__JINJA_LITERAL, v.s.ptr, (size_t)v.s.len);
    }
    rlhf__buf_free(&b);
    return st;
}

static int is_digit(char c) { return c >= '0' && c <= '9'; }

// Reads a number: 12, 1_000, 1.5, 2e-3.
static rlhf_status lex_number(struct lexer *x) {
    char text[32];
    size_t n = 0;
    int real = 0;
    for (; x->at < x->n; step(x, 1)) {
        const char c = x->s[x->at], next = x->at + 1 < x->n ? x->s[x->at + 1] : '\0';
        const int sign = (c == '-' || c == '+') && n && (text[n - 1] | 0x20) == 'e';
        const int point = c == '.' && is_digit(next);
        if (!is_word((unsigned char)c) && !point && !sign) break;
        real |= point || (c | 0x20) == 'e';
        if (c != '_' && n < sizeof text) text[n++] = c;
    }
    char *end = NULL;
    text[n < sizeof text ? n : 0] = '\0';
    const int64_t whole = strtoll(text, &end, 10);
    const double value = real ? strtod(text, &end) : 0;
    if (!end || end == text || *end || (!real && n > 18))
        return UNKNOWN(x, "a number that is not known", x->line);
    return push(x, RLHF__JINJA_LITERAL, NULL,
                real ? rlhf__jinja_float(value) : rlhf__jinja_int(whole));
}

static rlhf_status lex_word(struct lexer *x) {
    const size_t from = x->at;
    if (is_digit(x->s[from])) return lex_number(x);
    while (x->at < x->n && is_word((unsigned char)x->s[x->at]))
        step(x, 1);
    return push_text(x, RLHF__JINJA_NAME, x->s + from, x->at - from);
}

static rlhf_status lex_op(struct lexer *x) {
    static const char *const ops[] = {"==", "!=", ">=", "<=", "//", "**", "+", "-", "*",
                                      "/",  "%",  "~",  "<",  ">",  "=",  ".", ",", ":",
                                      "|",  "(",  ")",  "[",  "]",  "{",  "}"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (!begins(x, ops[i])) continue;
        x->braces += ops[i][0] == '{' ? 1 : ops[i][0] == '}' ? -1 : 0;
        step(x, strlen(ops[i]));
        return push_sign(x, RLHF__JINJA_OP, ops[i]);
    }
    return UNKNOWN(x, "the sign '%c'", x->line,
                   x->s[x->at] > 32 && x->s[x->at] < 127 ? x->s[x->at] : '?');
}

// Reads the tokens of a tag after its "{%" or "{{", up to and including the end of the tag.
static rlhf_status lex_tag(struct lexer *x, int out) {
    const char *end = out ? "}}" : "%}";
    char minus[4] = "-", plus[4] = "+";
    memcpy(minus + 1, end, 3);
    memcpy(plus + 1, end, 3);
    x->braces = 0;
    for (;;) {
        while (x->at < x->n && x->s[x->at] && strchr(" \t\n\v\f", x->s[x->at]))
            step(x, 1);
        if (x->at == x->n) return UNKNOWN(x, "a tag that does not end", x->line);
        int sign = begins(x, minus) ? 1 : begins(x, plus) ? 2 : 0;
        if (x->braces <= 0 && (sign || begins(x, end))) {
            step(x, sign ? 3 : 2);
            step_behind(x, sign == 1, !out && sign != 2);
            return push_sign(x, out ? RLHF__JINJA_OUT_END : RLHF__JINJA_TAG_END, NULL);
        }
        char c = x->s[x->at];
        RLHF_TRY(c == '"' || c == '\''       ? lex_string(x)
                 : is_word((unsigned char)c) ? lex_word(x)
                                             : lex_op(x));
    }
}

// ---- between tags ----

// Adds the text s[0..n), which ends at x->at. If a tag begins there, leaves out the white space
// that the tag removes. `at_line` is 1 if the text begins at the start of a line.
static rlhf_status push_between(struct lexer *x, const char *s, size_t n, int at_line) {
    char sign = x->n - x->at > 2 ? x->s[x->at + 2] : '\0';
    if (sign == '-') {
        n = (size_t)rlhf__space_trim((rlhf_str){s, n}, 0, 1).len;
    } else if (sign != '+' && x->at < x->n && x->s[x->at + 1] != '{') {
        size_t line = n;
        while (line && s[line - 1] != '\n')
            line--;
        size_t left = (size_t)rlhf__space_trim((rlhf_str){s + line, n - line}, 1, 0).len;
        if ((line > 0 || at_line) && left == 0) n = line;
    }
    return n ? push_text(x, RLHF__JINJA_TEXT, s, n) : RLHF_OK;
}

static rlhf_status skip_comment(struct lexer *x) {
    while (x->at < x->n && !begins(x, "#}"))
        step(x, 1);
    if (x->at == x->n) return UNKNOWN(x, "a comment that does not end", x->line);
    int minus = x->s[x->at - 1] == '-', plus = x->s[x->at - 1] == '+';
    step(x, 2);
    step_behind(x, minus, !plus);
    return RLHF_OK;
}

static rlhf_status lex_all(struct lexer *x) {
    while (x->at < x->n) {
        size_t from = x->at;
        int at_line = from == 0 || x->s[from - 1] == '\n';
        while (x->at < x->n && !begins(x, "{%") && !begins(x, "{{") && !begins(x, "{#"))
            step(x, 1);
        RLHF_TRY(push_between(x, x->s + from, x->at - from, at_line));
        if (x->at == x->n) break;
        char kind = x->s[x->at + 1];
        step(x, 2);
        if (x->at < x->n && (x->s[x->at] == '-' || x->s[x->at] == '+')) step(x, 1);
        if (kind == '#') {
            RLHF_TRY(skip_comment(x));
            continue;
        }
        RLHF_TRY(push_sign(x, kind == '{' ? RLHF__JINJA_OUT : RLHF__JINJA_TAG, NULL));
        RLHF_TRY(lex_tag(x, kind == '{'));
    }
    return push_sign(x, RLHF__JINJA_END, NULL);
}

rlhf_status rlhf__jinja_lex(const char *text, size_t n, struct rlhf__jinja_work *w,
                            struct rlhf__jinja_tokens *out, struct rlhf__error *err) {
    struct rlhf__buf lines = RLHF__BUF_INIT; // \r\n and \r are line ends too
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\r' && i + 1 < n && text[i + 1] == '\n') continue;
        rlhf__buf_putc(&lines, text[i] == '\r' ? '\n' : text[i]);
    }
    rlhf_status st = rlhf__buf_ok(&lines, err);
    size_t len = lines.len;
    if (len && lines.data[len - 1] == '\n') len--; // a final line end is dropped
    const rlhf__value own = rlhf__jinja_copied(w, rlhf__buf_text(&lines), len);
    if (st == RLHF_OK && w->state) st = no_memory(err);
    rlhf__buf_free(&lines);
    RLHF_TRY(st);
    struct lexer x = {.s = own.s.ptr, .n = len, .line = 1, .w = w, .out = out, .err = err};
    return memchr(x.s, '\0', len) ? UNKNOWN(&x, "a NUL", 1) : lex_all(&x);
}
