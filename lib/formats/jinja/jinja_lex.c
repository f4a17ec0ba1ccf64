// jinja_lex.c: see jinja_lex.h.
#include "jinja/jinja_lex.h"

#include "base/printable.h"
#include "values/jinja_letter.h"
#include "values/jinja_number.h"
#include "values/jinja_text.h"

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

// The length of the character at x->at if it is white space, otherwise 0.
static size_t space_at(const struct lexer *x) {
    uint32_t c = 0;
    const size_t n = x->at < x->n ? rlhf__letter_at(x->s + x->at, x->n - x->at, &c) : 0;
    return n && rlhf__letter_is_space(c) ? n : 0;
}

// The length of the character at x->at if it is a part of a name, otherwise 0.
static size_t word_char(const struct lexer *x) {
    uint32_t c = 0;
    const size_t n = x->at < x->n ? rlhf__letter_at(x->s + x->at, x->n - x->at, &c) : 0;
    return n && c != 0xFFFD && rlhf__letter_is_name(c) ? n : 0;
}

// Reads at most `most` digits of a base. Returns their number.
static size_t digits(const char *s, size_t n, size_t most, uint32_t base, uint32_t *out) {
    size_t i = 0;
    *out = 0;
    for (; i < n && i < most; i++) {
        const char c = s[i];
        const uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                               : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                               : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                      : 16;
        if (digit >= base) break;
        *out = *out * base + digit;
    }
    return i;
}

// Append the character that an escape sequence stands for. s[0..n) is the text after the backslash.
// Returns the number of bytes used, or 0 if the sequence is incomplete or not valid UTF-8. A
// backslash before another character is kept, as in Python.
static size_t put_escape(struct rlhf__buf *b, const char *s, size_t n) {
    static const char from[] = "ntr\\'\"bfav", to[] = "\n\t\r\\'\"\b\f\a\v";
    const char *known = n && s[0] ? strchr(from, s[0]) : NULL;
    uint32_t c;
    char utf8[4];
    if (known) {
        rlhf__buf_putc(b, to[known - from]);
        return 1;
    }
    if (n && s[0] == '\n') return 1; // a line that goes on
    size_t used = digits(s, n, 3, 8, &c);
    const size_t wanted = !n || used ? 0 : s[0] == 'x' ? 2 : s[0] == 'u' ? 4 : s[0] == 'U' ? 8 : 0;
    if (wanted && digits(s + 1, n - 1, wanted, 16, &c) != wanted) return 0;
    if (wanted) used = wanted + 1;
    if (!used && (!n || s[0] == 'N')) return 0; // the name of a character
    if (!used) {
        rlhf__buf_putc(b, '\\');
        return n + 1; // more than the text has: nothing is used
    }
    if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) return 0;
    rlhf__buf_put(b, utf8, rlhf__letter_put(c, utf8));
    return used;
}

static rlhf_status lex_string(struct lexer *x) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    char quote = x->s[x->at];
    rlhf_status st = RLHF_OK;
    step(x, 1);
    while (st == RLHF_OK && x->at < x->n && x->s[x->at] != quote) {
        const size_t left = x->n - x->at - 1;
        size_t used = 1;
        if (x->s[x->at] != '\\')
            rlhf__buf_putc(&b, x->s[x->at]);
        else if ((used = put_escape(&b, x->s + x->at + 1, left)) == 0)
            st = UNKNOWN(x, "an escape in a string that is not known", x->line);
        else
            used = used > left ? 1 : used + 1;
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
    rlhf__buf_finish(&b);
    return st;
}

static int is_digit(char c) { return c >= '0' && c <= '9'; }

// The length of the digits from offset `at` on, in which single underscores may stand between
// digits.
static size_t row_of_digits(const struct lexer *x, size_t at, const char *of) {
    size_t n = 0;
    for (; at + n < x->n; n++) {
        const char c = x->s[at + n], next = at + n + 1 < x->n ? x->s[at + n + 1] : '\0';
        if (!(c && strchr(of, c)) && !(c == '_' && n && next && strchr(of, next))) break;
        if (c == '_' && x->s[at + n - 1] == '_') break;
    }
    return n;
}

// Copies n bytes without underscores.
static size_t without_lines(char *out, size_t cap, const char *s, size_t n) {
    size_t len = 0;
    for (size_t i = 0; i < n && len + 1 < cap; i++)
        if (s[i] != '_') out[len++] = s[i];
    out[len] = '\0';
    return len;
}

// Reads a number: 12, 1_000, 0x1F, 1.5, 2e-3. After a point, as in x.0.1, numbers are integers.
static rlhf_status lex_number(struct lexer *x) {
    static const char decimal[] = "0123456789", hexadecimal[] = "0123456789abcdefABCDEF";
    char text[RLHF__JINJA_DIGITS_MAX + 40];
    const char *s = x->s + x->at,
               kind = x->n - x->at > 2 && s[0] == '0' ? (char)(s[1] | 0x20) : '\0';
    const uint32_t base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
    const int after_point = x->at > 0 && x->s[x->at - 1] == '.';
    size_t n = 0;
    if (base != 10) {
        n = row_of_digits(x, x->at + (s[2] == '_' ? 3 : 2),
                          base == 16  ? hexadecimal
                          : base == 8 ? "01234567"
                                      : "01");
        if (n) n += s[2] == '_' ? 3 : 2;
    }
    const size_t prefix = n ? 2 : 0;
    if (!n) n = row_of_digits(x, x->at, decimal);
    int real = 0;
    if (!prefix && !after_point) {
        const char *end = s + n, *last = x->s + x->n;
        size_t more = end + 1 < last && *end == '.' ? row_of_digits(x, x->at + n + 1, decimal) : 0;
        if (more) n += more + 1, real = 1;
        end = s + n;
        const int sign = end + 1 < last && (end[1] == '+' || end[1] == '-');
        if (end < last && (*end | 0x20) == 'e' &&
            (more = row_of_digits(x, x->at + n + 1 + (size_t)sign, decimal)) > 0)
            n += 1 + (size_t)sign + more, real = 1;
    }
    if (!prefix && !real && s[0] == '0') { // 012 is 0 and 12
        size_t zeros = 1;
        while (zeros < n && (s[zeros] == '0' || s[zeros] == '_'))
            zeros++;
        n = zeros < n ? 1 : n;
    }
    if (n >= sizeof text) return UNKNOWN(x, "a number that is too long", x->line);
    const size_t len = without_lines(text, sizeof text, s + prefix, n - prefix);
    const rlhf__value v = real
                              ? rlhf__jinja_float(strtod(text, NULL))
                              : rlhf__jinja_digits(x->w, (rlhf_str){text, len}, prefix ? base : 10);
    if (x->w->state) return UNKNOWN(x, "%s", x->line, x->w->why);
    step(x, n);
    return push(x, RLHF__JINJA_LITERAL, NULL, v);
}

static rlhf_status lex_word(struct lexer *x) {
    const size_t from = x->at;
    if (is_digit(x->s[from])) return lex_number(x);
    for (size_t n; (n = word_char(x)) > 0;)
        step(x, n);
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
        for (size_t space; (space = space_at(x)) > 0;)
            step(x, space);
        if (x->at == x->n) return UNKNOWN(x, "a tag that does not end", x->line);
        int sign = begins(x, minus) ? 1 : begins(x, plus) ? 2 : 0;
        if (x->braces <= 0 && (sign || begins(x, end))) {
            step(x, sign ? 3 : 2);
            step_behind(x, sign == 1, !out && sign != 2);
            return push_sign(x, out ? RLHF__JINJA_OUT_END : RLHF__JINJA_TAG_END, NULL);
        }
        char c = x->s[x->at];
        RLHF_TRY(c == '"' || c == '\'' ? lex_string(x) : word_char(x) ? lex_word(x) : lex_op(x));
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
    const size_t from = x->at; // a sign before it belongs to the comment's beginning
    while (x->at < x->n && !begins(x, "#}"))
        step(x, 1);
    if (x->at == x->n) return UNKNOWN(x, "a comment that does not end", x->line);
    const char sign = x->at > from ? x->s[x->at - 1] : '\0';
    step(x, 2);
    step_behind(x, sign == '-', sign != '+');
    return RLHF_OK;
}

// Returns 1 if a tag {% word %} begins at x->at. Sets *n to its length, and *sign to the "-" or "+"
// before its end, or 0.
static int is_tag(const struct lexer *x, const char *word, size_t *n, char *sign) {
    struct lexer y = *x;
    if (!begins(&y, "{%")) return 0;
    step(&y, 2);
    if (y.at < y.n && (y.s[y.at] == '-' || y.s[y.at] == '+')) step(&y, 1);
    for (size_t space; (space = space_at(&y)) > 0;)
        step(&y, space);
    if (!begins(&y, word)) return 0;
    step(&y, strlen(word));
    for (size_t space; (space = space_at(&y)) > 0;)
        step(&y, space);
    *sign = y.at < y.n && (y.s[y.at] == '-' || y.s[y.at] == '+') ? y.s[y.at] : '\0';
    if (*sign) step(&y, 1);
    *n = y.at + 2 - x->at;
    return begins(&y, "%}");
}

// Reads the text between {% raw %} and {% endraw %}, whose first tag has n bytes.
static rlhf_status lex_raw(struct lexer *x, size_t n, char sign) {
    step(x, n);
    step_behind(x, sign == '-', 0);
    const size_t from = x->at;
    const int at_line = from == 0 || x->s[from - 1] == '\n';
    while (x->at < x->n && !is_tag(x, "endraw", &n, &sign))
        step(x, 1);
    if (x->at == x->n) return UNKNOWN(x, "'%s' is missing", x->line, "endraw");
    RLHF_TRY(push_between(x, x->s + from, x->at - from, at_line));
    step(x, n);
    step_behind(x, sign == '-', sign != '+');
    return RLHF_OK;
}

static rlhf_status lex_all(struct lexer *x) {
    while (x->at < x->n) {
        size_t from = x->at, raw;
        char sign;
        int at_line = from == 0 || x->s[from - 1] == '\n';
        while (x->at < x->n && !begins(x, "{%") && !begins(x, "{{") && !begins(x, "{#"))
            step(x, 1);
        RLHF_TRY(push_between(x, x->s + from, x->at - from, at_line));
        if (x->at == x->n) break;
        if (is_tag(x, "raw", &raw, &sign) && sign != '+') {
            RLHF_TRY(lex_raw(x, raw, sign));
            continue;
        }
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
    rlhf__buf_finish(&lines);
    RLHF_TRY(st);
    struct lexer x = {.s = own.s.ptr, .n = len, .line = 1, .w = w, .out = out, .err = err};
    return memchr(x.s, '\0', len) ? UNKNOWN(&x, "a NUL", 1) : lex_all(&x);
}
