// checker.c: see checker.h.
#include "answer/checker.h"

#include "answer/clean.h"
#include "answer/letters.h"
#include "answer/place.h"
#include "answer/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { COMPARE_AUTO = 0, COMPARE_NUMBER = 1, COMPARE_TEXT = 2 };
enum { PERCENT_UNIT = 0, PERCENT_HUNDREDTH = 1, PERCENT_EITHER = 2 };

enum { MAX_BRACKETS = 4 };

static const rlhf_str hashes = {"####", 4};

static const char *const where_names[] = {"any",    "marked",      "marker", "boxed",
                                          "hashes", "last_number", "whole",  NULL};
static const char *const compare_names[] = {"auto", "number", "text", NULL};
static const char *const percent_names[] = {"unit", "hundredth", "either", NULL};
const rlhf_opt rlhf__answer_opts[RLHF__N_ANSWER_OPTIONS] = {
    RLHF_OPT_STR(struct rlhf__answer_options, field, "answer",
                 "where the row has the right answer: a key, or from a slash on a JSON Pointer"),
    RLHF_OPT_ENUM(struct rlhf__answer_options, where, RLHF__WHERE_ANY, where_names,
                  "where a response has its answer; any: after the marker, else in \\boxed{}, else "
                  "after ####, else its last number; marked: the same without the last number"),
    RLHF_OPT_STR(struct rlhf__answer_options, marker, NULL,
                 "text that the answer follows on the same line, e.g. \"The answer is\""),
    RLHF_OPT_STR(struct rlhf__answer_options, after, NULL,
                 "only what is after the last occurrence of this text counts, e.g. \"</think>\"; a "
                 "response without it is wrong"),
    RLHF_OPT_ENUM(struct rlhf__answer_options, compare, COMPARE_AUTO, compare_names,
                  "auto: as numbers where the row's answer is one, else as texts"),
    RLHF_OPT_F64(struct rlhf__answer_options, tolerance, 0, 0, 1e300,
                 "a number this far from the right one is right too"),
    RLHF_OPT_F64(struct rlhf__answer_options, relative, 0, 0, 1,
                 "the same as a share of the right number; the larger of the two counts"),
    RLHF_OPT_ENUM(struct rlhf__answer_options, percent, PERCENT_UNIT, percent_names,
                  "25% is 25 with unit, 0.25 with hundredth, and both with either"),
    RLHF_OPT_BOOL(struct rlhf__answer_options, units, 1,
                  "a currency sign before a number and words after it do not count; false: a "
                  "number must stand alone"),
    RLHF_OPT_BOOL(struct rlhf__answer_options, ignore_case, 0,
                  "texts may differ in the case of ASCII letters"),
};

const char *rlhf__answer_where_name(int32_t where) { return where_names[where]; }

const char *rlhf__answer_why_unused(const struct rlhf__answer_options *o, const char *key) {
    static const char *const numbers[] = {"tolerance", "relative", "percent", "units"};
    const int where = o->where;
    if (strcmp(key, "marker") == 0 && where != RLHF__WHERE_ANY && where != RLHF__WHERE_MARKED &&
        where != RLHF__WHERE_MARKER)
        return "where names another place";
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(key, numbers[i]) == 0 && o->compare == COMPARE_TEXT) return "compare is text";
    if (strcmp(key, "ignore_case") == 0 && o->compare == COMPARE_NUMBER) return "compare is number";
    return NULL;
}

// ---- one checker ----

rlhf_status rlhf__checker_init(struct rlhf__checker *c, const rlhf_host *host,
                               const struct rlhf__answer_options *options) {
    *c = (struct rlhf__checker){.host = host, .options = options};
    c->rows = host->service(host, RLHF_SVC_ROW);
    if (!c->rows)
        return host->fail(host, RLHF_E_UNSUPPORTED, "this host does not offer " RLHF_SVC_ROW);
    if (options->where == RLHF__WHERE_MARKER && (!options->marker || !*options->marker))
        return host->fail(host, RLHF_E_INVALID, "where=marker needs marker=TEXT");
    if (options->where == RLHF__WHERE_LAST_NUMBER && options->compare == COMPARE_TEXT)
        return host->fail(host, RLHF_E_INVALID,
                          "where=last_number reads a number; compare=text compares texts");
    return RLHF_OK;
}

void rlhf__checker_finish(struct rlhf__checker *c) {
    if (!c->host) return;
    c->host->free(c->host, c->gold_bytes);
    c->host->free(c->host, c->bytes);
    *c = (struct rlhf__checker){.host = NULL};
}

static rlhf_status reserve(const rlhf_host *host, char **bytes, uint64_t *cap, uint64_t need) {
    if (need < *cap) return RLHF_OK;
    host->free(host, *bytes);
    *cap = 0;
    *bytes = host->alloc(host, 2 * need + 64);
    if (!*bytes) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    *cap = 2 * need + 64;
    return RLHF_OK;
}

// ---- numbers in an answer ----

// The thousands separator in "1,234" joins, other commas separate.
static int separates(rlhf_str text, uint64_t at) {
    const char *p = text.ptr + at, *end = text.ptr + text.len;
    int digits = 0;
    while (p + 1 + digits < end && rlhf__is_digit(p[1 + digits]))
        digits++;
    return !(at > 0 && rlhf__is_digit(p[-1]) && digits == 3);
}

// 1 if one of the words or signs that join statements is at `at`.
static int joins(rlhf_str text, uint64_t at) {
    static const char *const all[] = {
        ";",    "<",    ">",    "\\\\", "\\lor", "\\land",       "\\vee",        "\\wedge",
        "\\le", "\\ge", "\\ne", "\\lt", "\\gt",  "\xe2\x89\xa4", "\xe2\x89\xa5", "\xe2\x89\xa0"};
    static const char *const words[] = {"or", "and"};
    const char *p = text.ptr + at;
    const uint64_t left = text.len - at;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const size_t n = strlen(all[i]);
        if (left < n || memcmp(p, all[i], n) != 0) continue;
        if (*p != '\\' || n == 2 || left == n || !rlhf__is_letter(p[n])) return 1;
    }
    for (size_t i = 0; i < 2; i++) {
        const size_t n = strlen(words[i]);
        const int alone =
            (at == 0 || !rlhf__is_letter(p[-1])) && (left <= n || !rlhf__is_letter(p[n]));
        if (left >= n && memcmp(p, words[i], n) == 0 && alone) return 1;
    }
    return 0;
}

// 1 if the text, which an "=" follows, has more than one statement: "x=3, y", "x = 3 or x". Commas
// in brackets separate arguments.
static int is_several(rlhf_str text) {
    int depth = 0;
    for (uint64_t at = 0; at < text.len; at++) {
        const char c = text.ptr[at];
        depth += rlhf__is_one_of(c, "([{");
        depth -= rlhf__is_one_of(c, ")]}");
        if (depth <= 0 && ((c == ',' && separates(text, at)) || joins(text, at))) return 1;
    }
    // "x=3  y": a variable stands apart after a number
    uint64_t end = rlhf__trim(text).len, at = end;
    const char *p = rlhf__trim(text).ptr;
    while (at > 0 && rlhf__is_letter(p[at - 1]))
        at--;
    const uint64_t letters = end - at;
    const rlhf_str number = rlhf__trim((rlhf_str){p, at});
    return letters > 0 && rlhf__has_variable(p + at, p + end) && number.len && number.len < at &&
           rlhf__is_digit(number.ptr[number.len - 1]);
}

// 1 if the text before an "=" or similar sign makes it an inequality: "!=", "\\not=", "=/=".
static int negates(rlhf_str before) {
    static const char not [] = "\\not";
    const rlhf_str text = rlhf__trim(before);
    const size_t n = sizeof not -1;
    if (before.len && rlhf__is_one_of(before.ptr[before.len - 1], "!<>/")) return 1;
    return text.len >= n && memcmp(text.ptr + text.len - n, not, n) == 0;
}

// Cuts *text to the part after the last "=" or similar sign: "x = 5" gives 5. Returns 0 if the text
// is an inequality ("x >= 5"), several equations ("x = 3, y = 5") or an equation that is not solved
// yet ("2x = 10").
static int right_side(rlhf_str *text) {
    for (uint64_t at = text->len; at-- > 0;) {
        const char *p = text->ptr + at;
        const uint64_t left = text->len - at;
        uint64_t n = *p == '=' ? 1 : 0;
        if (left >= 3 && memcmp(p, "\xe2\x89\x88", 3) == 0) n = 3; // approximately equal
        if (left >= 7 && memcmp(p, "\\approx", 7) == 0) n = 7;
        if (!n) continue;
        const rlhf_str before = {text->ptr, at};
        if (negates(before) || rlhf__has_term(before) || is_several(before)) return 0;
        *text = (rlhf_str){p + n, left - n};
        return 1;
    }
    return 1;
}

// Removes a pair of brackets around the text. Returns 0 if the text is not in brackets.
static int unwrap(rlhf_str *text) {
    static const char *const pairs[][2] = {
        {"(", ")"}, {"[", "]"}, {"\\{", "\\}"}, {"{", "}"}, {"\\lbrace", "\\rbrace"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const size_t a = strlen(pairs[i][0]), b = strlen(pairs[i][1]);
        if (text->len <= a + b || memcmp(text->ptr, pairs[i][0], a) != 0 ||
            memcmp(text->ptr + text->len - b, pairs[i][1], b) != 0)
            continue;
        *text = rlhf__strip((rlhf_str){text->ptr + a, text->len - a - b});
        return 1;
    }
    return 0;
}

// Reads a text that consists of a number, possibly in brackets.
static int read_alone(rlhf_str text, int units, struct rlhf__answer_reading *out) {
    if (!right_side(&text)) return 0;
    text = rlhf__strip(text);
    if (rlhf__read_whole(text, units, out)) return 1;
    for (int depth = 0; depth < MAX_BRACKETS && unwrap(&text); depth++) {
        if (memchr(text.ptr, ',', (size_t)text.len)) return 0; // (1,234) is a pair
        if (rlhf__read_whole(text, 0, out)) return 1;
    }
    return 0;
}

// ---- gold answers ----

// Finds the answer in a gold answer. Solutions in datasets end in "#### 18" or \boxed{18}.
static rlhf_str gold_place(const struct rlhf__answer_options *o, rlhf_str text) {
    const rlhf_str marker = {o->marker, o->marker ? strlen(o->marker) : 0};
    rlhf_str out;
    if (rlhf__place_behind(text, hashes, &out) || rlhf__place_boxed(text, &out) ||
        rlhf__place_behind(text, marker, &out))
        return out;
    return text;
}

static rlhf_status refuse_gold(const struct rlhf__checker *c, rlhf_str text, const char *why) {
    int shown = (int)(text.len < 60 ? text.len : 60);
    while (shown && (uint64_t)shown < text.len && ((unsigned char)text.ptr[shown] & 0xc0) == 0x80)
        shown--;
    return rlhf_failf(c->host, RLHF_E_INVALID, "\"%s\" of the data row is \"%.*s\", %s",
                      c->options->field, shown, text.ptr ? text.ptr : "", why);
}

static rlhf_status take_gold(struct rlhf__checker *c, rlhf_str text) {
    const struct rlhf__answer_options *o = c->options;
    const int wants = o->compare == COMPARE_NUMBER || o->where == RLHF__WHERE_LAST_NUMBER;
    RLHF_TRY(reserve(c->host, &c->gold_bytes, &c->gold_cap, 2 * text.len));
    const rlhf_str place = rlhf__clean(gold_place(o, text), c->gold_bytes);
    c->gold = (struct rlhf__gold){.text = rlhf__strip(place)};
    if (!c->gold.text.len) return refuse_gold(c, text, "which has no answer in it");
    if (o->compare != COMPARE_TEXT)
        c->gold.is_number = read_alone(place, o->units, &c->gold.number);
    if (wants && !c->gold.is_number)
        return refuse_gold(c, text,
                           o->compare == COMPARE_NUMBER
                               ? "which is not a number (compare=number)"
                               : "which is not a number (where=last_number)");
    return RLHF_OK;
}

// The shortest text for this number.
static rlhf_str number_text(double value, char out[40]) {
    int n = 0;
    for (int digits = 15; digits <= 17; digits++) {
        n = snprintf(out, 40, "%.*g", digits, value);
        if (strtod(out, NULL) == value) break;
    }
    return (rlhf_str){out, (uint64_t)n};
}

static rlhf_status read_gold(struct rlhf__checker *c, const rlhf_row *row) {
    const rlhf_row_service *r = c->rows;
    const char *field = c->options->field;
    rlhf_str text;
    double value;
    char digits[40];
    if (r->type(c->host, row, field) == RLHF_JSON_NUMBER) {
        RLHF_TRY(r->number(c->host, row, field, &value));
        return take_gold(c, number_text(value, digits));
    }
    RLHF_TRY(r->string(c->host, row, field, &text));
    return take_gold(c, text);
}

rlhf_status rlhf__checker_gold(struct rlhf__checker *c, rlhf_str text) {
    rlhf_row *row = NULL;
    if (text.len && text.ptr == c->row.ptr && text.len == c->row.len) return RLHF_OK;
    rlhf__checker_forget(c);
    if (!text.len)
        return rlhf_failf(
            c->host, RLHF_E_INVALID,
            "the prompt has no data row, so no \"%s\", which field names; use prompts "
            "in a .jsonl file",
            c->options->field);
    RLHF_TRY(c->rows->open(c->host, text, &row));
    const rlhf_status st = read_gold(c, row);
    c->rows->close(c->host, row);
    if (st >= 0) c->row = text;
    return st;
}

void rlhf__checker_forget(struct rlhf__checker *c) { c->row = (rlhf_str){NULL, 0}; }

// ---- comparison ----

static int near_enough(const struct rlhf__answer_options *o, const struct rlhf__ratio *gold,
                       int32_t shift_gold, const struct rlhf__ratio *x, int32_t shift) {
    if (rlhf__ratio_equal(gold, shift_gold, x, shift)) return 1;
    if (!(o->tolerance > 0 || o->relative > 0)) return 0;
    const double g = rlhf__ratio_value(gold, shift_gold), v = rlhf__ratio_value(x, shift);
    if (!isfinite(v) || !isfinite(g)) return 0; // beyond the range of doubles
    const double bound = fmax(o->tolerance, o->relative * fabs(g));
    return fabs(v - g) <= bound + 1e-12 * fmax(fabs(v), fabs(g)); // 3.1 is within 0.1 of 3
}

static int same_number(const struct rlhf__answer_options *o,
                       const struct rlhf__answer_reading *gold,
                       const struct rlhf__answer_reading *x) {
    const int32_t least = o->percent == PERCENT_UNIT ? 0 : -2;
    const int32_t most = o->percent == PERCENT_HUNDREDTH ? -2 : 0;
    for (int32_t g = gold->percent ? least : 0; g <= (gold->percent ? most : 0); g += 2)
        for (int32_t s = x->percent ? least : 0; s <= (x->percent ? most : 0); s += 2)
            if (near_enough(o, &gold->value, g, &x->value, s)) return 1;
    return 0;
}

// 1 if the brace at the beginning is closed at the end.
static int is_group(rlhf_str text) {
    int depth = 0;
    for (uint64_t i = 0; i < text.len; i++) {
        depth += (text.ptr[i] == '{') - (text.ptr[i] == '}');
        if (!depth) return i > 1 && i == text.len - 1;
    }
    return 0;
}

// "(B)" becomes B, because the letter of a choice is often in brackets. "(3, 4)" and "f(x)" stay
// unchanged. Braces around all are TeX's.
static rlhf_str without_brackets(rlhf_str text) {
    for (int depth = 0; depth < MAX_BRACKETS && is_group(text); depth++)
        text = rlhf__trim((rlhf_str){text.ptr + 1, text.len - 2});
    if (text.len < 3 || *text.ptr != '(' || text.ptr[text.len - 1] != ')') return text;
    const rlhf_str inside = {text.ptr + 1, text.len - 2};
    for (uint64_t i = 0; i < inside.len; i++)
        if (rlhf__is_one_of(inside.ptr[i], "(),")) return text;
    return rlhf__trim(inside).len ? rlhf__trim(inside) : text;
}

static int same(const struct rlhf__checker *c, rlhf_str text,
                const struct rlhf__answer_reading *x) {
    const struct rlhf__gold *gold = &c->gold;
    if (gold->is_number) return same_number(c->options, &gold->number, x);
    return rlhf__same_text(without_brackets(gold->text), without_brackets(text),
                           c->options->ignore_case);
}

// ---- responses ----

enum kind { KIND_NONE = 0, KIND_LINE = 1, KIND_ALONE = 2, KIND_LAST = 3 };

// Finds the part of the response that contains the answer, and sets *out to it. Returns how to read
// a number in this part (enum kind), or KIND_NONE if the options require a mark that the response
// lacks. Sets *marked to 1 if the response marks the part as the answer, otherwise to 0.
static enum kind find_place(const struct rlhf__checker *c, rlhf_str text, rlhf_str *out,
                            int32_t *marked) {
    const struct rlhf__answer_options *o = c->options;
    const rlhf_str marker = {o->marker, o->marker ? strlen(o->marker) : 0};
    const int where = o->where, any = where == RLHF__WHERE_ANY || where == RLHF__WHERE_MARKED;
    *marked = 1;
    if ((any || where == RLHF__WHERE_MARKER) && rlhf__place_behind(text, marker, out))
        return KIND_LINE;
    if ((any || where == RLHF__WHERE_BOXED) && rlhf__place_boxed(text, out)) return KIND_ALONE;
    if ((any || where == RLHF__WHERE_HASHES) && rlhf__place_behind(text, hashes, out))
        return KIND_LINE;
    *marked = 0;
    *out = text;
    if (where == RLHF__WHERE_WHOLE) return KIND_ALONE;
    if (where == RLHF__WHERE_LAST_NUMBER) return KIND_LAST;
    return where != RLHF__WHERE_ANY ? KIND_NONE : c->gold.is_number ? KIND_LAST : KIND_ALONE;
}

static int read_number(const struct rlhf__checker *c, enum kind kind, rlhf_str text,
                       struct rlhf__answer_reading *out) {
    const int units = c->options->units;
    if (kind == KIND_LAST) return rlhf__read_last(text, out);
    if (kind == KIND_ALONE) return read_alone(text, units, out);
    rlhf_str equation = text;
    const char *comma = memchr(text.ptr, ',', (size_t)text.len);
    const char *equals = memchr(text.ptr, '=', (size_t)text.len);
    if (comma && equals && equals < comma && !right_side(&equation)) return 0;
    return rlhf__read_whole(rlhf__strip(text), units, out) ||
           (units && !out->term && rlhf__read_first(text, out));
}

rlhf_status rlhf__checker_judge(struct rlhf__checker *c, rlhf_str row, rlhf_str response,
                                struct rlhf__answer_verdict *out) {
    const char *after = c->options->after;
    rlhf_str text = response, place;
    struct rlhf__answer_reading number = {0};
    int32_t marked;
    *out = (struct rlhf__answer_verdict){0};
    RLHF_TRY(rlhf__checker_gold(c, row));
    if (after && *after && !rlhf__place_after(text, (rlhf_str){after, strlen(after)}, &text))
        return RLHF_OK;
    const enum kind kind = find_place(c, text, &place, &marked);
    if (kind == KIND_NONE) return RLHF_OK;
    RLHF_TRY(reserve(c->host, &c->bytes, &c->cap, 2 * place.len));
    place = rlhf__clean(place, c->bytes);
    while (kind == KIND_ALONE && !marked && c->gold.is_number && place.len &&
           rlhf__is_one_of(place.ptr[place.len - 1], "! \n"))
        place.len--; // a whole response that ends in "!" is a sentence
    const rlhf_str bare = rlhf__strip(place);
    out->found = c->gold.is_number ? read_number(c, kind, place, &number) : bare.len > 0;
    out->marked = out->found && marked;
    out->correct = out->found && same(c, bare, &number);
    return RLHF_OK;
}
