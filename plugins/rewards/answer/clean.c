// clean.c: see clean.h.
#include "answer/clean.h"

#include "answer/letters.h"

struct rule {
    const char *from, *to;
};

// Commands whose braces go with them: \text{cm} is cm.
static const char *const wrappers[] = {"text",   "textbf",       "textit",     "textrm", "texttt",
                                       "mathrm", "mathbf",       "mathit",     "mathsf", "mathtt",
                                       "mbox",   "operatorname", "boldsymbol", "emph"};

// Commands, which end where no letter follows.
static const struct rule commands[] = {
    {"left", ""},        {"right", ""},       {"displaystyle", ""},  {"dfrac", "\\frac"},
    {"tfrac", "\\frac"}, {"cfrac", "\\frac"}, {"times", "\xc3\x97"}, {"cdot", "\xc2\xb7"},
    {"quad", " "},       {"qquad", " "},      {"degree", "\xc2\xb0"}};

static const struct rule symbols[] = {{"\\!", ""},
                                      {"\\,", RLHF__NBSP},
                                      {"\\;", " "},
                                      {"\\:", " "},
                                      {"\\ ", " "},
                                      {"\\(", " "},
                                      {"\\)", " "},
                                      {"\\[", " "},
                                      {"\\]", " "},
                                      {"\\$", "$"},
                                      {"\\%", "%"},
                                      {"{,}", ","},
                                      {"^\\circ", "\xc2\xb0"},
                                      {"^{\\circ}", "\xc2\xb0"},
                                      {"~", " "},
                                      {"\xe2\x88\x92", "-"},         // minus
                                      {"\xe2\x80\x93", "-"},         // en dash
                                      {"\xe2\x80\x89", RLHF__NBSP},  // thin
                                      {"\xe2\x80\xaf", RLHF__NBSP}}; // narrow, no break

enum { MAX_DEPTH = 64 };

struct cleaning {
    const char *at, *end;
    char *out;
    uint64_t dropped; // bit d: the brace at depth d was a wrapper's
    int32_t depth, reserved;
};

static int begins(const struct cleaning *c, const char *word) {
    const size_t n = strlen(word);
    return (size_t)(c->end - c->at) >= n && memcmp(c->at, word, n) == 0;
}

static void put(struct cleaning *c, const char *text) {
    const size_t n = strlen(text);
    memcpy(c->out, text, n);
    c->out += n;
}

// The length of \word at the cursor, 0 = it is another.
static size_t command(const struct cleaning *c, const char *word) {
    const size_t n = strlen(word), room = (size_t)(c->end - c->at);
    if (room < n + 1 || memcmp(c->at + 1, word, n) != 0) return 0;
    return room > n + 1 && rlhf__is_letter(c->at[n + 1]) ? 0 : n + 1;
}

// "\text {": the wrapper and its brace.
static int take_wrapper(struct cleaning *c) {
    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++) {
        size_t n = command(c, wrappers[i]);
        if (!n) continue;
        const char *brace = c->at + n;
        while (brace < c->end && *brace == ' ')
            brace++;
        if (brace == c->end || *brace != '{' || c->depth == MAX_DEPTH) return 0;
        c->dropped |= (uint64_t)1 << c->depth++;
        c->at = brace + 1;
        return 1;
    }
    return 0;
}

static int take_command(struct cleaning *c) {
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const size_t n = command(c, commands[i].from);
        if (!n) continue;
        put(c, commands[i].to);
        c->at += n;
        return 1;
    }
    return 0;
}

static int take_symbol(struct cleaning *c) {
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        if (!begins(c, symbols[i].from)) continue;
        put(c, symbols[i].to);
        c->at += strlen(symbols[i].from);
        return 1;
    }
    return 0;
}

static void take_byte(struct cleaning *c) {
    const char here = *c->at++;
    if (here == '{' && c->depth < MAX_DEPTH) {
        c->dropped &= ~((uint64_t)1 << c->depth++);
    } else if (here == '}' && c->depth > 0) {
        if (c->dropped >> --c->depth & 1) return;
    }
    *c->out++ = here;
}

rlhf_str rlhf__clean(rlhf_str text, char *out) {
    struct cleaning c = {.at = text.ptr, .end = text.ptr + text.len, .out = out};
    while (c.at < c.end) {
        const char here = *c.at;
        if (here == '\\' && (take_wrapper(&c) || take_command(&c))) continue;
        if ((here == '\\' || here == '{' || here == '^' || here == '~' || here == '\xe2') &&
            take_symbol(&c))
            continue;
        take_byte(&c);
    }
    return (rlhf_str){out, (uint64_t)(c.out - out)};
}

// ---- ends ----

// The bytes of one character at the end or the beginning of a text that are of set, or white space.
static uint64_t loose_at(rlhf_str t, int end, const char *set) {
    if (!t.len) return 0;
    const char c = end ? t.ptr[t.len - 1] : *t.ptr;
    if (rlhf__is_space(c) || rlhf__is_one_of(c, set)) return 1;
    if (t.len > 1 && memcmp(end ? t.ptr + t.len - 2 : t.ptr, RLHF__NBSP, 2) == 0) return 2;
    return 0;
}

static rlhf_str cut_ends(rlhf_str t, const char *front, const char *back) {
    for (uint64_t n; (n = loose_at(t, 0, front)) != 0; t.len -= n)
        t.ptr += n;
    for (uint64_t n; (n = loose_at(t, 1, back)) != 0;)
        t.len -= n;
    return t;
}

rlhf_str rlhf__trim(rlhf_str text) { return cut_ends(text, "", ""); }
rlhf_str rlhf__strip(rlhf_str text) { return cut_ends(text, "\"'*_`$", "\"'*_`$.,;:!"); }

// ---- sameness ----

// The next byte that counts, ' ' for a run of white space, -1 at the end.
static int next_byte(rlhf_str *t, int ignore_case) {
    int space = 0;
    while (t->len) {
        uint64_t n = *t->ptr == '$' ? 1 : loose_at(*t, 0, "");
        if (!n) break;
        space |= *t->ptr != '$';
        t->ptr += n;
        t->len -= n;
    }
    if (space) return ' ';
    if (!t->len) return -1;
    const char c = *t->ptr++;
    t->len--;
    return (unsigned char)(ignore_case ? rlhf__lower(c) : c);
}

int rlhf__same_text(rlhf_str a, rlhf_str b, int ignore_case) {
    for (;;) {
        const int x = next_byte(&a, ignore_case), y = next_byte(&b, ignore_case);
        if (x != y) return 0;
        if (x < 0) return 1;
    }
}
