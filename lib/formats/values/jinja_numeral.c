// jinja_numeral.c: see jinja_numeral.h.
#include "values/jinja_numeral.h"

#include "values/jinja_letter.h"
#include "values/jinja_operator.h"
#include "values/jinja_text.h"

#include <stdlib.h>
#include <string.h>

static int is_alnum(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z'); }

// The text without white space around it, in small ASCII letters: the decimal digits of other
// scripts become ASCII digits. Without "_" between digits; a "_" at another place is kept, so that
// the text is no number. Ends with NUL.
static rlhf_str plain(struct rlhf__jinja_work *w, rlhf_str text) {
    rlhf_str s = rlhf__space_trim(text, 1, 1);
    char *out = rlhf__jinja_alloc(w, (size_t)s.len + 1);
    size_t n = 0;
    if (!out || !rlhf__jinja_pay(w, 8 * (size_t)text.len)) return (rlhf_str){"", 0};
    for (size_t i = 0, size; i < s.len; i += size) {
        uint32_t c = 0;
        size = rlhf__letter_at(s.ptr + i, (size_t)s.len - i, &c);
        if (c >= 'A' && c <= 'Z') c += 32;
        if (c >= 0x80 && rlhf__letter_is_decimal(c)) c = (uint32_t)('0' + rlhf__letter_digit(c));
        out[n++] = c && c < 0x80 ? (char)c : '?';
    }
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const int between =
            out[i] == '_' && i && i + 1 < n && is_alnum(out[i - 1]) && is_alnum(out[i + 1]);
        if (out[i] != '_' || !between) out[kept++] = out[i] == '_' ? '?' : out[i];
    }
    out[kept] = '\0';
    return (rlhf_str){out, kept};
}

static int64_t base_of(char c) { return c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0; }

rlhf__value rlhf__numeral_int(struct rlhf__jinja_work *w, rlhf_str text, int64_t base) {
    rlhf_str s = plain(w, text);
    const int sign = s.len && (s.ptr[0] == '-' || s.ptr[0] == '+'), minus = s.len && *s.ptr == '-';
    if ((base != 0 && base < 2) || base > 36) return rlhf__jinja_undefined();
    s = (rlhf_str){s.ptr + sign, s.len - (uint64_t)sign};
    const int64_t prefix = s.len > 2 && s.ptr[0] == '0' ? base_of(s.ptr[1]) : 0;
    if (prefix && (base == 0 || base == prefix)) {
        s = (rlhf_str){s.ptr + 2, s.len - 2};
        base = prefix;
    } else if (base == 0) {
        base = 10;
        const size_t zeros = strspn(s.ptr, "0");
        if (zeros && zeros < s.len) return rlhf__jinja_undefined(); // 012 is an error
    }
    const rlhf__value v = rlhf__jinja_digits(w, s, (uint32_t)base);
    return v.type && minus ? rlhf__jinja_signed(w, v, 1) : v;
}

// Returns 1 if s is digits with a point and an exponent.
static int is_decimal(const char *s) {
    static const char digits[] = "0123456789";
    const size_t whole = strspn(s, digits);
    s += whole;
    size_t fraction = 0;
    if (*s == '.') {
        fraction = strspn(s + 1, digits);
        s += 1 + fraction;
    }
    if (!whole && !fraction) return 0;
    if (*s == 'e') {
        s++;
        s += *s == '+' || *s == '-';
        if (!strspn(s, digits)) return 0;
        s += strspn(s, digits);
    }
    return *s == '\0';
}

rlhf__value rlhf__numeral_float(struct rlhf__jinja_work *w, rlhf_str text) {
    const rlhf_str s = plain(w, text);
    if (w->state) return rlhf__jinja_undefined();
    const char *from = s.ptr + (s.len && (s.ptr[0] == '-' || s.ptr[0] == '+'));
    if (!is_decimal(from) && strcmp(from, "inf") != 0 && strcmp(from, "infinity") != 0 &&
        strcmp(from, "nan") != 0)
        return rlhf__jinja_undefined();
    return rlhf__jinja_float(strtod(s.ptr, NULL));
}
