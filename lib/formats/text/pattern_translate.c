// pattern_translate.c: translates Oniguruma's patterns to PCRE2's. Some syntax has a different
// meaning in PCRE2. Such syntax is translated if PCRE2 can express Oniguruma's meaning, and refused
// otherwise. Syntax with the same meaning is copied.
#include "text/pattern.h"

#include "text/unicode.h"

#include <stdio.h>
#include <string.h>

// Oniguruma's \s and \w, as the contents of a character class. Oniguruma's \w includes the
// superscripts and fractions of Latin-1.
#define SPACE "\\p{White_Space}"
#define WORD  "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}"

struct reader {
    const char *s, *end;
    struct rlhf__buf *out;
    int in_class; // inside [...]
    int groups;   // number of open parentheses
};

static int is_at(const struct reader *r, const char *text) {
    size_t n = strlen(text);
    return (size_t)(r->end - r->s) >= n && memcmp(r->s, text, n) == 0;
}

// Writes the ranges of the characters that PCRE2's version of Unicode lacks and whose category
// begins with `name`.
static void put_new(struct reader *r, const char *name) {
    struct rlhf__unicode_range range;
    for (size_t i = 0; rlhf__unicode_new(i, &range); i++) {
        static const char names[][3] = {"Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd",
                                        "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm",
                                        "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};
        const char *category = names[range.category];
        if (strncmp(category, name, strlen(name)) != 0) continue;
        rlhf__buf_printf(r->out, "\\x{%X}-\\x{%X}", (unsigned)range.first, (unsigned)range.last);
    }
}

// Writes a set of characters, alone or as a part of a class. `inside` is the set's syntax inside a
// class. Characters that PCRE2 lacks are added to the set if their category is in `fresh`.
static const char *put_set(struct reader *r, const char *inside, const char *const *fresh,
                           int negated) {
    if (negated && r->in_class) return "a negated set inside [...]";
    if (!r->in_class) rlhf__buf_puts(r->out, negated ? "[^" : "[");
    rlhf__buf_puts(r->out, inside);
    for (size_t i = 0; fresh && fresh[i]; i++)
        put_new(r, fresh[i]);
    if (!r->in_class) rlhf__buf_puts(r->out, "]");
    return NULL;
}

// Translates \p{Name}, \P{Name} and \p{^Name}. Name can be a general category, Han or Alphabetic.
// Of the alphabetic characters that PCRE2 lacks, only letters are added, not marks.
static const char *put_property(struct reader *r, int negated) {
    static const char *const known[] = {"L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc",
                                        "Me", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd", "Ps",
                                        "Pe", "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk", "So",
                                        "Z",  "Zs", "Zl", "Zp", "Cc", "Cf"};
    const char *close = memchr(r->s, '}', (size_t)(r->end - r->s));
    if (r->s == r->end || *r->s != '{' || !close) return "\\p without {name}";
    const char *name = r->s + 1;
    if (*name == '^') {
        negated = !negated;
        name++;
    }
    size_t n = (size_t)(close - name);
    r->s = close + 1;
    if (n == 3 && !memcmp(name, "Han", 3)) // sc: the script without its script extensions
        return put_set(r, "\\p{sc:Han}\\x{2EBF0}-\\x{2EE5D}\\x{31350}-\\x{323AF}", NULL, negated);
    if (n == 10 && !memcmp(name, "Alphabetic", 10)) {
        static const char *const letters[] = {"L", NULL};
        return put_set(r, "\\p{Alphabetic}", letters, negated);
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strlen(known[i]) != n || memcmp(known[i], name, n) != 0) continue;
        char inside[16];
        const char *const fresh[] = {known[i], NULL};
        snprintf(inside, sizeof inside, "\\p{%s}", known[i]);
        return put_set(r, inside, fresh, negated);
    }
    return "a property other than general categories, Han and Alphabetic";
}

static const char *put_word_set(struct reader *r, int negated) {
    static const char *const fresh[] = {"L", "M", "Nd", NULL};
    return put_set(r, WORD, fresh, negated);
}

// Translates \b and \B with Oniguruma's definition of a word.
static const char *put_boundary(struct reader *r, int negated) {
    if (r->in_class) return "\\b inside [...]";
    rlhf__buf_puts(r->out, "(?:(?<=");
    put_word_set(r, 0);
    rlhf__buf_puts(r->out, negated ? ")(?=" : ")(?!");
    put_word_set(r, 0);
    rlhf__buf_puts(r->out, ")|(?<!");
    put_word_set(r, 0);
    rlhf__buf_puts(r->out, negated ? ")(?!" : ")(?=");
    put_word_set(r, 0);
    rlhf__buf_puts(r->out, "))");
    return NULL;
}

static int is_hex(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// Translates \uHHHH, \xHH or \x{H...} to \x{...} with the same code point.
static const char *put_code(struct reader *r, char kind) {
    char digits[9];
    size_t n = 0;
    int braces = kind == 'x' && r->s < r->end && *r->s == '{';
    size_t most = braces ? 8 : kind == 'u' ? 4 : 2;
    r->s += braces;
    while (n < most && r->s < r->end && is_hex(*r->s))
        digits[n++] = *r->s++;
    digits[n] = '\0';
    if (!n || (kind == 'u' && n < 4)) return "an incomplete code of a character";
    if (braces && (r->s == r->end || *r->s++ != '}')) return "an incomplete code of a character";
    if (kind == 'x' && !braces && (n < 2 || digits[0] > '7')) return "\\x above 7F"; // a byte
    rlhf__buf_printf(r->out, "\\x{%s}", digits);
    return NULL;
}

static const char *put_escape(struct reader *r) {
    if (++r->s == r->end) return "a \\ at the end";
    char c = *r->s++;
    static const char *const digit[] = {"Nd", NULL};
    switch (c) {
    case 's':
        return put_set(r, SPACE, NULL, 0);
    case 'S': // inside a class, use \P{..}: none of the new characters is white space
        if (r->in_class) rlhf__buf_puts(r->out, "\\P{White_Space}");
        return r->in_class ? NULL : put_set(r, SPACE, NULL, 1);
    case 'd':
        return put_set(r, "\\p{Nd}", digit, 0);
    case 'D':
        return put_set(r, "\\p{Nd}", digit, 1);
    case 'w':
        return put_word_set(r, 0);
    case 'W':
        return put_word_set(r, 1);
    case 'h':
        return put_set(r, "0-9a-fA-F", NULL, 0);
    case 'H':
        return put_set(r, "0-9a-fA-F", NULL, 1);
    case 'p':
        return put_property(r, 0);
    case 'P':
        return put_property(r, 1);
    case 'b':
        return put_boundary(r, 0);
    case 'B':
        return put_boundary(r, 1);
    case 'u':
    case 'x':
        return put_code(r, c);
    default:
        break;
    }
    if (c == 'Z' && !r->in_class) { // PCRE2's \Z does not tell that it looked at the text's end
        rlhf__buf_puts(r->out, "(?=\\n?\\z)");
        return NULL;
    }
    int same = strchr("nrtfaeAz", c) != NULL && !(r->in_class && strchr("Az", c));
    if (c == 'v') { // a vertical tab; in PCRE2, \v is any vertical white space
        rlhf__buf_puts(r->out, "\\x{B}");
        return NULL;
    }
    int letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if ((uint8_t)c >= 0x80 || (letter && !same)) return "an escape";
    rlhf__buf_putc(r->out, '\\');
    rlhf__buf_putc(r->out, c);
    return NULL;
}

// Translates a class, from the [ to its ].
static const char *put_class(struct reader *r) {
    rlhf__buf_putc(r->out, *r->s++);
    if (r->s < r->end && *r->s == '^') rlhf__buf_putc(r->out, *r->s++);
    if (r->s < r->end && *r->s == ']') return "[] or []...]";
    r->in_class = 1;
    while (r->s < r->end && *r->s != ']') {
        const char *why = NULL;
        if (*r->s == '[') return "a class inside [...]";
        if (is_at(r, "&&")) return "&& inside [...]";
        if (*r->s == '\\')
            why = put_escape(r);
        else
            rlhf__buf_putc(r->out, *r->s++);
        if (why) return why;
    }
    if (r->s == r->end) return "a [ without its ]";
    r->in_class = 0;
    rlhf__buf_putc(r->out, *r->s++);
    return NULL;
}

static const char *put_group(struct reader *r) {
    static const char *const same[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?-i:"};
    r->groups++;
    if (is_at(r, "(?i)") && rlhf__buf_ok(r->out, NULL) == RLHF_OK && r->out->len == 0) {
        r->groups--;
        rlhf__buf_puts(r->out, "(?i)");
        r->s += 4;
        return NULL;
    }
    if (is_at(r, "(*")) return "(*";
    if (!is_at(r, "(?")) {
        rlhf__buf_puts(r->out, "(?:"); // a group without a capture, which is not needed
        r->s++;
        return NULL;
    }
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        if (!is_at(r, same[i])) continue;
        rlhf__buf_puts(r->out, same[i]);
        r->s += strlen(same[i]);
        return NULL;
    }
    return "a kind of group";
}

// Translates {n}, {n,}, {,n} and {n,m}. Any other { is an ordinary character.
static const char *put_braces(struct reader *r) {
    const char *s = r->s + 1, *digits = s;
    while (s < r->end && *s >= '0' && *s <= '9')
        s++;
    int low = s > digits, comma = s < r->end && *s == ',', high = 0;
    if (comma)
        for (s++; s < r->end && *s >= '0' && *s <= '9'; s++)
            high = 1;
    if (s == r->end || *s != '}' || (!low && !high)) {
        rlhf__buf_puts(r->out, "\\{");
        r->s++;
        return NULL;
    }
    rlhf__buf_puts(r->out, low ? "{" : "{0");
    rlhf__buf_put(r->out, digits, (size_t)(s + 1 - digits));
    r->s = s + 1;
    // In Oniguruma, {n,m}+ repeats the repetition; in PCRE2, it forbids backtracking. The meaning
    // of {n}? differs too. So neither is translated.
    if (r->s < r->end && (*r->s == '+' || *r->s == '*')) return "{...} followed by + or *";
    if (r->s < r->end && *r->s == '?' && !comma) return "{n}?";
    return NULL;
}

const char *rlhf__pattern_translate(const char *text, size_t n, struct rlhf__buf *out) {
    struct reader r = {.s = text, .end = text + n, .out = out};
    const char *why = NULL;
    while (r.s < r.end && !why) {
        switch (*r.s) {
        case '\\':
            why = put_escape(&r);
            break;
        case '[':
            why = put_class(&r);
            break;
        case '(':
            why = put_group(&r);
            break;
        case '{':
            why = put_braces(&r);
            break;
        case ')':
            if (!r.groups--) return "a ) without its (";
            rlhf__buf_putc(out, *r.s++);
            break;
        case '\0':
            return "a NUL";
        default:
            rlhf__buf_putc(out, *r.s++);
            break;
        }
    }
    return why ? why : r.groups ? "a ( without its )" : NULL;
}
