// score.c: see score.h.
#include "rubric/score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 2048, NUMBERS = 32, UNIT_WORDS = 2 };

struct number {
    const char *at, *end;
    double value;
    int percent;
};

// The last line of an answer.
struct line {
    char text[LINE];
    int cut; // 1: the line is longer, and this is its end
    size_t n;
    struct number number[NUMBERS]; // those that may be the score
};

static int is_digit(char c) { return c >= '0' && c <= '9'; }
static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }
static int is_latin(char c) { return lower(c) >= 'a' && lower(c) <= 'z'; }
static int is_letter(char c) { return is_latin(c) || (unsigned char)c > 127; }

static const char *blanks(const char *at) { return at + strspn(at, " \t\r"); }

// If the word is at `at`, returns its end, otherwise NULL.
static const char *word(const char *at, const char *text) {
    const size_t n = strlen(text);
    for (size_t i = 0; i < n; i++)
        if (lower(at[i]) != text[i]) return NULL;
    return is_letter(at[n]) ? NULL : at + n;
}

// ---- the line ----

const char *rlhf__score_line(const char *text, size_t *n) {
    size_t end = *n, from = end;
    int bare = 1; // blank, a code fence, a rule
    for (; from > 0 && (bare || text[from - 1] != '\n'); from--) {
        const char c = text[from - 1];
        if (c == '\n') end = from - 1;
        bare = bare && !is_letter(c) && !is_digit(c);
    }
    *n = end - from;
    return text + from;
}

// Copies the bytes and replaces characters that look like ASCII: fullwidth ones, dashes, slashes
// and joining spaces. Leaves out emphasis of Markdown.
static void plain(struct line *l, const char *text, size_t n) {
    static const struct {
        char from[4], to;
    } all[] = {{"\xe2\x81\x84", '/'}, {"\xe2\x88\x95", '/'}, {"\xe2\x80\x93", '-'},
               {"\xe2\x80\x94", '-'}, {"\xe2\x88\x92", '-'}, {"\xe2\x80\xaf", ' '}};
    char *to = l->text;
    for (size_t i = 0; i < n; i++) {
        const unsigned char *c = (const unsigned char *)text + i;
        const int three = n - i >= 3;
        char found = 0;
        for (size_t k = 0; three && k < sizeof all / sizeof *all; k++)
            if (memcmp(c, all[k].from, 3) == 0) found = all[k].to;
        if (three && c[0] == 0xef && (c[1] == 0xbc || c[1] == 0xbd) && c[2] >= 0x80) {
            const int code = c[1] == 0xbc ? c[2] - 0x80 : c[2] - 0x40; // from U+FF00
            if (code > 0 && code < 0x5f) found = (char)(0x20 + code);
        }
        i += found ? 2 : 0;
        if (!found && n - i >= 2 && c[0] == 0xc2 && c[1] == 0xa0) {
            found = ' ';
            i++;
        }
        if (!found) found = *c ? (char)*c : ' ';
        if (found != '*' && found != '`') *to++ = found;
    }
    *to = 0;
}

// ---- numbers ----

// Returns the length of the number at `at`, or 0. A comma before one, two or more than three digits
// is a decimal comma; before three digits it separates thousands. *comma: where it is, or NULL.
static size_t number_length(const char *at, const char **comma) {
    size_t n = strspn(at, "0123456789");
    *comma = NULL;
    if ((at[n] == '.' || at[n] == ',') && is_digit(at[n + 1])) {
        if (at[n] == ',') *comma = at + n;
        n += 1 + strspn(at + n + 1, "0123456789");
    }
    if (lower(at[n]) != 'e') return n;
    const size_t sign = at[n + 1] == '-' || at[n + 1] == '+';
    return is_digit(at[n + 1 + sign]) ? n + 1 + sign + strspn(at + n + 1 + sign, "0123456789") : n;
}

// Reads the digits at `at`, which belong to no word.
static struct number read_number(const char *at, const char *begin) {
    const char *comma;
    char digits[64] = "";
    const size_t n = number_length(at, &comma);
    struct number x = {.at = at, .end = at + n, .value = (double)NAN};
    const int thousands = comma && strspn(comma + 1, "0123456789") == 3;
    size_t k = 0;
    for (size_t i = 0; i < n && n < sizeof digits; i++)
        if (at + i != comma || !thousands) digits[k++] = at + i == comma ? '.' : at[i];
    if (k) x.value = strtod(digits, NULL);
    if (at > begin && at[-1] == '-' && (at - 1 == begin || !strchr("0123456789", at[-2])) &&
        !(at - 1 > begin && is_letter(at[-2])))
        x.value = -x.value;
    x.percent = *blanks(x.end) == '%';
    return x;
}

static int is_ordinal(const char *end) {
    return word(end, "st") || word(end, "nd") || word(end, "rd") || word(end, "th");
}

// If "out of", "of" or "/" follows, with at most a unit before it ("8 stars out of"), returns the
// position of the number after it, otherwise NULL.
static const char *divisor(const char *end) {
    const char *at = blanks(end);
    if (*at == '(' || *at == ',') at = blanks(at + 1);
    for (int words = 0; words <= UNIT_WORDS; words++) {
        const char *next = *at == '/' ? at + 1 : word(at, "of");
        if (!next && word(at, "out")) next = word(blanks(word(at, "out")), "of");
        if (next) return is_digit(*blanks(next)) ? blanks(next) : NULL;
        if (!is_letter(*at)) return NULL;
        while (is_letter(*at))
            at++;
        at = blanks(at);
    }
    return NULL;
}

// If the number at x is the beginning of the scale's range ("1 to 10"), returns the range's end,
// otherwise NULL.
static const char *range_end(const struct number *x, const char *begin, double scale) {
    if (x->value != 0 && x->value != 1) return NULL;
    const char *at = blanks(x->end), *next = *at == '-' ? at + 1 : word(at, "to");
    if (!next) next = word(at, "and");
    if (!next || !is_digit(*blanks(next))) return NULL;
    const struct number high = read_number(blanks(next), begin);
    const double top = fabs(high.value); // in "0-10" the sign is a dash
    return top == scale ? high.end : NULL;
}

// 1 if the number only names the scale: "10-point scale", "a scale of 10".
static int names_scale(const struct number *x, const char *begin) {
    static const char before[] = "scale of";
    const char *at = blanks(x->end), *back = x->at;
    const char *point = word(at + (*at == '-'), "point");
    if (point && word(point + (*point == ' ' || *point == '-'), "scale")) return 1;
    while (back > begin && back[-1] == ' ')
        back--;
    const size_t n = sizeof before - 1;
    return (size_t)(back - begin) >= n && word(back - n, before) == back;
}

// If the number follows "score:", "rating is" or the like, returns the label, otherwise NULL.
static const char *label_of(const struct number *x, const char *begin) {
    static const char *const labels[] = {"score", "rating", "grade"};
    const char *at = x->at;
    int joined = 0;
    for (; at > begin && strchr(" :=\"'>", at[-1]); at--)
        joined |= at[-1] == ':' || at[-1] == '=' || at[-1] == '>';
    if (at - begin > 3 && word(at - 2, "is") && at[-3] == ' ') {
        joined = 1;
        at -= 3;
    }
    for (size_t i = 0; joined && i < sizeof labels / sizeof *labels; i++) {
        const size_t n = strlen(labels[i]);
        if ((size_t)(at - begin) < n || !word(at - n, labels[i])) continue;
        at -= n;
        // In {"score": 3} the quotes are closed; "score: 3" is a quotation.
        return at > begin && at[-1] == '"' && at[n] != '"' ? NULL : at;
    }
    return NULL;
}

// 1 if the number is labeled as the scale: "max score: 10", "perfect score is 10".
static int is_labeled_scale(const struct number *x, const char *begin) {
    static const char *const all[] = {"max",     "maximum", "maximal", "best", "top",
                                      "perfect", "highest", "full",    "total"};
    const char *at = label_of(x, begin);
    if (!at) return 0;
    while (at > begin && (at[-1] == ' ' || at[-1] == '_' || at[-1] == '-'))
        at--;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const size_t n = strlen(all[i]);
        if ((size_t)(at - begin) >= n && word(at - n, all[i]) == at) return 1;
    }
    return 0;
}

// Collect the numbers of the line that may be the score. Returns the reason if the line has no
// score, otherwise NULL.
static const char *collect(struct line *l, double scale) {
    for (const char *at = l->text; *at;) {
        if (is_latin(*at)) { // the digits of a word such as Q1 are not a number
            while (is_latin(*at) || is_digit(*at))
                at++;
            continue;
        }
        if (!is_digit(*at)) {
            at++;
            continue;
        }
        const struct number x = read_number(at, l->text);
        const char *range = range_end(&x, l->text, scale), *under = divisor(x.end);
        at = range ? range : x.end;
        const int of_scale =
            x.value == scale && (names_scale(&x, l->text) || is_labeled_scale(&x, l->text));
        if (range || is_ordinal(x.end) || of_scale) continue;
        if (under) {
            const struct number all = read_number(under, l->text);
            if (all.value != scale) return "whose denominator is not the scale";
            at = all.end;
        }
        if (l->n == NUMBERS) return "which has too many numbers";
        l->number[l->n++] = x;
    }
    return l->n ? NULL : "which has no number";
}

const char *rlhf__score_read(const char *text, size_t n, double scale, double *score) {
    struct line l = {.n = 0};
    const char *from = rlhf__score_line(text, &n);
    l.cut = n >= LINE;
    if (l.cut) from += n - (LINE - 1);
    plain(&l, from, l.cut ? LINE - 1 : n);
    const char *why = collect(&l, scale);
    if (why) return why;
    const struct number *x = &l.number[l.n - 1];
    int alone = !l.cut, labeled = label_of(x, l.text) != NULL;
    for (size_t i = 0; i + 1 < l.n; i++) {
        if (l.number[i].value == x->value) continue;
        alone = 0;
        labeled = labeled && !label_of(&l.number[i], l.text);
    }
    if (!alone && !labeled) return "in which several numbers may be the score";
    if (x->percent && scale != 100) return "which is a percentage";
    if (!(x->value >= 0 && x->value <= scale)) return "which is outside the scale";
    *score = x->value;
    return NULL;
}
