// clean.c: see clean.h.
#include "answer/clean.h"

#include "answer/letters.h"

struct rule {
    const char *from, *to;
};

// Commands that are removed together with their braces: \text{cm} becomes cm.
static const char *const wrappers[] = {
    "text",       "textbf", "textit",    "textrm", "texttt", "mathrm",
    "mathbf",     "mathit", "mathsf",    "mathtt", "mbox",   "operatorname",
    "boldsymbol", "emph",   "underline", "boxed",  "fbox"};

// Commands. They match only if the next byte is not a letter.
static const struct rule commands[] = {
    {"left", ""},        {"right", ""},       {"displaystyle", ""},   {"dfrac", "\\frac"},
    {"tfrac", "\\frac"}, {"cfrac", "\\frac"}, {"times", "\xc3\x97"},  {"cdot", "\xc2\xb7"},
    {"quad", " "},       {"qquad", " "},      {"degree", "\xc2\xb0"}, {"geq", "\\ge"},
    {"leq", "\\le"},     {"neq", "\\ne"}};

static const struct rule symbols[] = {{"\\,", RLHF__NBSP},
                                      {"\\;", RLHF__NBSP},
                                      {"\\:", RLHF__NBSP},
                                      {"\\ ", RLHF__NBSP},
                                      {"\\(", " $"},
                                      {"\\)", "$ "},
                                      {"\\[", " $"},
                                      {"\\]", "$ "},
                                      {"\\$", "$"},
                                      {"\\%", "%"},
                                      {"{,}", ","},
                                      {"^\\circ", "\xc2\xb0"},
                                      {"^{\\circ}", "\xc2\xb0"},
                                      {"~", RLHF__NBSP},
                                      {"\xe2\x81\x84", "/"},         // fraction slash
                                      {"\xe2\x88\x92", "-"},         // minus
                                      {"\xe2\x80\x93", "-"},         // en dash
                                      {"\xe2\x80\x89", RLHF__NBSP},  // thin space
                                      {"\xe2\x80\xaf", RLHF__NBSP}}; // narrow, no break

enum { MAX_DEPTH = 64 };

struct cleaning {
    const char *at, *end;
    char *out;
    uint64_t dropped; // bit d: the brace at depth d belonged to a wrapper
    int32_t depth;
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

// If the command \word is at the cursor, returns its length. Otherwise returns 0.
static size_t command(const struct cleaning *c, const char *word) {
    const size_t n = strlen(word), room = (size_t)(c->end - c->at);
    if (room < n + 1 || memcmp(c->at + 1, word, n) != 0) return 0;
    return room > n + 1 && rlhf__is_letter(c->at[n + 1]) ? 0 : n + 1;
}

// Moves past a wrapper and its brace, such as "\text {".
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

// Moves past "\!", a negative space, with the spaces around it, which do not separate anything.
static int take_negative_space(struct cleaning *c, const char *begin) {
    if (!begins(c, "\\!")) return 0;
    for (c->at += 2; c->at < c->end && rlhf__is_space(*c->at);)
        c->at++;
    while (c->out > begin && rlhf__is_space(c->out[-1]))
        c->out--;
    return 1;
}

// If a superscript digit or sign is at the cursor, returns its length in bytes and sets *ascii.
static size_t superscript(const struct cleaning *c, char *ascii) {
    static const struct {
        char text[4], ascii;
    } all[] = {{"\xc2\xb2", '2'},     {"\xc2\xb3", '3'},     {"\xc2\xb9", '1'},
               {"\xe2\x81\xb0", '0'}, {"\xe2\x81\xb4", '4'}, {"\xe2\x81\xb5", '5'},
               {"\xe2\x81\xb6", '6'}, {"\xe2\x81\xb7", '7'}, {"\xe2\x81\xb8", '8'},
               {"\xe2\x81\xb9", '9'}, {"\xe2\x81\xba", '+'}, {"\xe2\x81\xbb", '-'}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (begins(c, all[i].text)) {
            *ascii = all[i].ascii;
            return strlen(all[i].text);
        }
    return 0;
}

// Writes superscripts as TeX does: 10\xc2\xb2 becomes 10^{2}.
static int take_superscripts(struct cleaning *c) {
    char ascii;
    size_t n = superscript(c, &ascii);
    if (!n) return 0;
    put(c, "^{");
    for (; n; n = superscript(c, &ascii)) {
        *c->out++ = ascii;
        c->at += n;
    }
    put(c, "}");
    return 1;
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
        if (here == '\\' && (take_negative_space(&c, out) || take_wrapper(&c) || take_command(&c)))
            continue;
        if ((here == '\xc2' || here == '\xe2') && take_superscripts(&c)) continue;
        if (begins(&c, "\\\\")) { // TeX's line break; its second backslash does not begin a command
            take_byte(&c);
            take_byte(&c);
            continue;
        }
        if ((here == '\\' || here == '{' || here == '^' || here == '~' || here == '\xe2') &&
            take_symbol(&c))
            continue;
        take_byte(&c);
    }
    return (rlhf_str){out, (uint64_t)(c.out - out)};
}

// ---- ends ----

// Looks at the last character (end = 1) or at the first one (end = 0). If this character is white
// space or in `set`, returns its length in bytes, otherwise 0.
static uint64_t loose_at(rlhf_str t, int end, const char *set) {
    if (!t.len) return 0;
    const char c = end ? t.ptr[t.len - 1] : *t.ptr;
    if (rlhf__is_space(c) || rlhf__is_one_of(c, set)) return 1;
    if (t.len > 1 && memcmp(end ? t.ptr + t.len - 2 : t.ptr, RLHF__NBSP, 2) == 0) return 2;
    return 0;
}

// 1 if the "!" at the end follows a word, and is not a factorial: yes!, but n! and 5!
static int is_exclamation(rlhf_str t) {
    uint64_t end = t.len, letters = 0;
    while (end && t.ptr[end - 1] == '!')
        end--;
    while (letters < end && rlhf__is_letter(t.ptr[end - 1 - letters]))
        letters++;
    return letters > 2;
}

// Like loose_at(t, 1, set), but keeps "!" of a factorial and "*" of an exponent.
static uint64_t loose_end(rlhf_str t, const char *set) {
    const char last = t.len ? t.ptr[t.len - 1] : 0, before = t.len > 1 ? t.ptr[t.len - 2] : 0;
    if (last == '!' && !is_exclamation(t)) return 0;
    if (last == '*' && rlhf__is_one_of(before, "^_")) return 0;
    return loose_at(t, 1, set);
}

static rlhf_str cut_ends(rlhf_str t, const char *front, const char *back) {
    for (uint64_t n; (n = loose_at(t, 0, front)) != 0; t.len -= n)
        t.ptr += n;
    for (uint64_t n; (n = loose_end(t, back)) != 0;)
        t.len -= n;
    return t;
}

rlhf_str rlhf__trim(rlhf_str text) { return cut_ends(text, "", ""); }

rlhf_str rlhf__strip(rlhf_str text) {
    rlhf_str t = text;
    for (uint64_t len = 0; len != t.len;) {
        len = t.len;
        t = cut_ends(t, "\"*_`$", "\"*_`$.,;:!");
        if (t.len > 1 && *t.ptr == '\'' && t.ptr[t.len - 1] == '\'')
            t = (rlhf_str){t.ptr + 1, t.len - 2};
    }
    return t;
}

// ---- comparison ----

// The state of reading a cleaned text byte by byte.
struct reading {
    rlhf_str left;
    char before;        // the last significant byte, 0 at the beginning
    int32_t word;       // 1: that byte belongs to a letter
    int32_t in_command; // 1: that byte belongs to the name of a command
    int32_t closing;    // number of open braces that contain one character
    int32_t ignore_case;
};

// Returns 1 if the text begins with a letter of any script, otherwise 0. If the text begins in the
// middle of a UTF-8 character, returns `was`, the result for that character's first byte.
static int is_word(rlhf_str t, int was) {
    const unsigned char c = (unsigned char)*t.ptr;
    if (c < 0x80) return rlhf__is_letter(*t.ptr);
    if (c < 0xc0) return was;
    const int times =
        t.len > 1 && (t.ptr[1] == '\x97' || t.ptr[1] == '\xb7'); // also excludes the division sign
    return c != 0xc2 && c != 0xe2 && !(c == 0xc3 && times);
}

// 1 if a space here is significant, because it separates words or numbers.
static int sets_apart(const struct reading *r) {
    if (r->in_command || !r->before) return 0;
    return r->word ? is_word(r->left, 0)
                   : rlhf__is_digit(r->before) && rlhf__is_digit(*r->left.ptr);
}

static uint64_t spaces(rlhf_str t, uint64_t at) {
    const uint64_t begin = at;
    for (uint64_t n; (n = loose_at((rlhf_str){t.ptr + at, t.len - at}, 0, "")) != 0;)
        at += n;
    return at - begin;
}

// If "{" is followed by one character and "}", returns the length of "{" and the white space after
// it. Otherwise returns 0.
static uint64_t single(rlhf_str t) {
    const uint64_t at = 1 + spaces(t, 1);
    if (at >= t.len || rlhf__is_one_of(t.ptr[at], "{}\\") || (unsigned char)t.ptr[at] >= 0x80)
        return 0;
    const uint64_t end = at + 1 + spaces(t, at + 1);
    return end < t.len && t.ptr[end] == '}' ? at : 0;
}

static void step(struct reading *r, uint64_t n) {
    r->left.ptr += n;
    r->left.len -= n;
}

// Skips insignificant bytes. Returns 1 if it skipped white space.
static int skip(struct reading *r) {
    int space = 0;
    for (uint64_t n = 1; n && r->left.len;) {
        n = loose_at(r->left, 0, "");
        space |= n > 0;
        if (!n && *r->left.ptr == '$') n = 1;
        if (!n && *r->left.ptr == '}' && r->closing > 0) {
            n = 1;
            r->closing--;
        }
        if (!n && *r->left.ptr == '{') {
            n = single(r->left);
            r->closing += n > 0;
        }
        step(r, n);
    }
    return space;
}

// The next significant byte. Returns ' ' for significant white space, and -1 at the end.
static int next_byte(struct reading *r) {
    const int space = skip(r);
    if (!r->left.len) return -1;
    if (space && sets_apart(r)) {
        r->before = 0;
        return ' ';
    }
    const char here = *r->left.ptr;
    r->in_command = here == '\\' || (r->in_command && rlhf__is_letter(here));
    r->word = is_word(r->left, r->word);
    r->before = here;
    step(r, 1);
    return (unsigned char)(r->ignore_case ? rlhf__lower(here) : here);
}

int rlhf__same_text(rlhf_str a, rlhf_str b, int ignore_case) {
    struct reading x = {.left = a, .ignore_case = ignore_case};
    struct reading y = {.left = b, .ignore_case = ignore_case};
    for (;;) {
        const int one = next_byte(&x), other = next_byte(&y);
        if (one != other) return 0;
        if (one < 0) return 1;
    }
}
