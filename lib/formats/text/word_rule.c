// word_rule.c: see word_rule.h. Each function implements its pattern, alternative by alternative.
#include "text/word_rule.h"

#include "text/unicode.h"

#include <string.h>

enum class { OTHER, LETTER, NUMBER, SPACE, LINE }; // LINE: \r, \n; also white space

static enum class class_of(uint32_t cp) {
    utf8proc_category_t category = rlhf__unicode_category(cp);
    if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) return LETTER;
    if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) return NUMBER;
    return rlhf__unicode_is_space(cp) ? SPACE : OTHER;
}

// enum class by general category
static const uint8_t ascii[128] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 4, 3, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0,
    0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0,
    0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0,
};

// The class and the length of the character at s[at].
static inline enum class look(const char *s, size_t n, size_t at, size_t *len) {
    uint8_t c = (uint8_t)s[at]; *len = 1; if (c < 0x80) return (enum class)ascii[c];
    uint32_t cp = 0;
    *len = rlhf__utf8_next(s + at, n - at, &cp, NULL);
    return class_of(cp);
}

static size_t run_of(enum class class, const char *s, size_t n, size_t at) {
    for (size_t len; at < n && look(s, n, at, &len) == class; at += len)
        ;
    return at;
}

// A run of white space: where it ends, where its last character begins, and where its last \r or \n
// ends (0: it lacks both).
struct gap {
    size_t end, last, line;
};

static struct gap gap_at(const char *s, size_t n, size_t at) {
    struct gap gap = {at, at, 0};
    for (size_t len; gap.end < n; gap.end += len) {
        enum class class = look(s, n, gap.end, &len);
        if (class < SPACE) break;
        gap.last = gap.end;
        if (class == LINE) gap.line = gap.end + len;
    }
    return gap;
}

// \s+(?!\S)|\s+
static size_t end_of_gap(struct gap gap, size_t n, size_t at) {
    return gap.end < n && gap.last > at ? gap.last : gap.end;
}

// s[at] is an apostrophe. Returns the end of the contraction ('s, 't, 're, 've, 'm, 'll or 'd) that
// begins with it, or 0 if none exists. If `folded` is 1, ignores case, and also accepts the long s,
// U+017F.
static size_t contraction(const char *s, size_t n, size_t at, int folded) {
    size_t left = n - at - 1;
    const uint8_t *p = (const uint8_t *)s + at + 1;
    uint8_t a = left > 0 ? p[0] : 0, b = left > 1 ? p[1] : 0;
    if (folded && a == 0xC5 && b == 0xBF) return at + 3;
    if (folded && a >= 'A' && a <= 'Z') a += 32;
    if (folded && b >= 'A' && b <= 'Z') b += 32;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return at + 2;
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return at + 3;
    return 0;
}

static size_t end_gpt2(const char *s, size_t n, size_t at) {
    size_t len, next_len = 0, end;
    if (s[at] == '\'' && (end = contraction(s, n, at, 0)) != 0) return end;
    enum class class = look(s, n, at, &len);
    if (s[at] == ' ' && at + 1 < n) { // the " ?" of the other alternatives
        enum class next = look(s, n, at + 1, &next_len);
        if (next < SPACE) return run_of(next, s, n, at + 1 + next_len);
    }
    if (class < SPACE) return run_of(class, s, n, at + len);
    return end_of_gap(gap_at(s, n, at), n, at);
}

// The end of the run of numeric characters that begins at `at`. The length of a run is limited to
// `most`.
static size_t end_of_number(const char *s, size_t n, size_t at, int most) {
    for (size_t len; most > 0 && at < n && look(s, n, at, &len) == NUMBER; at += len)
        most--;
    return at;
}

// [^\s\p{L}\p{N}]+[\r\n]*
static size_t end_of_marks(const char *s, size_t n, size_t at) {
    at = run_of(OTHER, s, n, at);
    while (at < n && (s[at] == '\r' || s[at] == '\n'))
        at++;
    return at;
}

static size_t end_llama3(const char *s, size_t n, size_t at, int digits) {
    size_t len, next_len = 0, end;
    if (s[at] == '\'' && (end = contraction(s, n, at, 1)) != 0) return end;
    enum class class = look(s, n, at, &len);
    if (class == LETTER) return run_of(LETTER, s, n, at + len);
    if (class == NUMBER) return end_of_number(s, n, at, digits);
    enum class next = at + len < n ? look(s, n, at + len, &next_len) : LINE;
    if (class != LINE && next == LETTER) return run_of(LETTER, s, n, at + len + next_len);
    if (class == OTHER) return end_of_marks(s, n, at);
    if (s[at] == ' ' && next == OTHER && at + 1 < n) return end_of_marks(s, n, at + 1);
    struct gap gap = gap_at(s, n, at);
    return gap.line ? gap.line : end_of_gap(gap, n, at); // \s*[\r\n]+ first
}

size_t rlhf__word_end(int32_t rule, const char *s, size_t n, size_t at) {
    if (rule == RLHF__WORD_GPT2) return end_gpt2(s, n, at);
    return end_llama3(s, n, at, rule == RLHF__WORD_LLAMA3 ? 3 : 1);
}

#define LLAMA3(digits)                                                                             \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" digits                     \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

int32_t rlhf__word_rule_of(const char *text, size_t n) {
    static const struct {
        const char *text;
        int32_t rule;
    } known[] = {
        {RLHF__PATTERN_GPT2, RLHF__WORD_GPT2},
        {LLAMA3("{1,3}"), RLHF__WORD_LLAMA3},
        {LLAMA3(""), RLHF__WORD_QWEN2},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].text) == n && !memcmp(known[i].text, text, n)) return known[i].rule;
    return 0;
}
