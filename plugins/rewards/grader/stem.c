// stem.c: see stem.h.
#include "grader/stem.h"

#include <string.h>

struct word {
    char c[RLHF__STEM_MOST];
    size_t n;
};

// ---- properties of the first n letters ----

static int is_one_of(char c, const char *set) { return c && strchr(set, c); }

static int is_consonant(const struct word *w, size_t i) {
    size_t from = i; // y is a consonant at the beginning, and after a vowel
    while (from > 0 && w->c[from] == 'y')
        from--;
    const int consonant = !is_one_of(w->c[from], "aeiou");
    return (i - from) % 2 ? !consonant : consonant;
}

// The number of vowels that a consonant follows.
static int measure(const struct word *w, size_t n) {
    int m = 0;
    for (size_t i = 1; i < n; i++)
        m += !is_consonant(w, i - 1) && is_consonant(w, i);
    return m;
}

static int has_vowel(const struct word *w, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!is_consonant(w, i)) return 1;
    return 0;
}

// 1 if they end with consonant, vowel, consonant, of which the last is not w, x or y; or if they
// are a vowel and a consonant.
static int is_short(const struct word *w, size_t n) {
    if (n == 2) return !is_consonant(w, 0) && is_consonant(w, 1);
    return n > 2 && is_consonant(w, n - 3) && !is_consonant(w, n - 2) && is_consonant(w, n - 1) &&
           !is_one_of(w->c[n - 1], "wxy");
}

static int ends(const struct word *w, const char *suffix) {
    const size_t n = strlen(suffix);
    return w->n >= n && memcmp(w->c + w->n - n, suffix, n) == 0;
}

static void put(struct word *w, size_t n, const char *suffix) {
    memcpy(w->c + n, suffix, strlen(suffix));
    w->n = n + strlen(suffix);
}

// ---- rules ----

struct rule {
    const char *from, *to;
};

// Applies the first rule whose suffix the word has, if the stem's measure is above `least`.
static void apply(struct word *w, const struct rule *rule, size_t n, int least) {
    for (size_t i = 0; i < n; i++) {
        if (!ends(w, rule[i].from)) continue;
        const size_t stem = w->n - strlen(rule[i].from);
        if (measure(w, stem) > least) put(w, stem, rule[i].to);
        return;
    }
}

static void plural(struct word *w) {
    if (ends(w, "sses") || (ends(w, "ies") && w->n != 4))
        w->n -= 2;
    else if (ends(w, "s") && !ends(w, "ss"))
        w->n--;
}

static void past(struct word *w) {
    if (ends(w, "ied")) {
        w->n -= w->n == 4 ? 1 : 2;
        return;
    }
    if (ends(w, "eed")) {
        if (measure(w, w->n - 3) > 0) w->n--;
        return;
    }
    const size_t cut = ends(w, "ed") ? 2 : ends(w, "ing") ? 3 : 0;
    if (!cut || !has_vowel(w, w->n - cut)) return;
    w->n -= cut;
    if (w->n > 1 && w->c[w->n - 1] == w->c[w->n - 2] && is_consonant(w, w->n - 1))
        w->n -= !is_one_of(w->c[w->n - 1], "lsz");
    else if (ends(w, "at") || ends(w, "bl") || ends(w, "iz") ||
             (measure(w, w->n) == 1 && is_short(w, w->n)))
        put(w, w->n, "e");
}

static void double_suffix(struct word *w) {
    static const struct rule all[] = {{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"},
                                      {"anci", "ance"},   {"izer", "ize"},    {"bli", "ble"},
                                      {"alli", "al"},     {"entli", "ent"},   {"eli", "e"},
                                      {"ousli", "ous"},   {"ization", "ize"}, {"ation", "ate"},
                                      {"ator", "ate"},    {"alism", "al"},    {"iveness", "ive"},
                                      {"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"},
                                      {"iviti", "ive"},   {"biliti", "ble"},  {"fulli", "ful"}};
    while (ends(w, "alli") && measure(w, w->n - 4) > 0)
        w->n -= 2;
    if (ends(w, "logi")) {
        w->n -= measure(w, w->n - 3) > 0;
        return;
    }
    apply(w, all, sizeof all / sizeof *all, 0);
}

static void suffix(struct word *w) {
    static const struct rule all[] = {{"icate", "ic"}, {"ative", ""},  {"alize", "al"},
                                      {"iciti", "ic"}, {"ical", "ic"}, {"ful", ""},
                                      {"ness", ""}};
    apply(w, all, sizeof all / sizeof *all, 0);
}

static void last_suffix(struct word *w) {
    static const char *const all[] = {"al",  "ance",  "ence", "er",  "ic",  "able", "ible",
                                      "ant", "ement", "ment", "ent", "ion", "ou",   "ism",
                                      "ate", "iti",   "ous",  "ive", "ize"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!ends(w, all[i])) continue;
        const size_t stem = w->n - strlen(all[i]);
        const int ion = strcmp(all[i], "ion") == 0;
        if (measure(w, stem) > 1 &&
            (!ion || (stem && (w->c[stem - 1] == 's' || w->c[stem - 1] == 't'))))
            w->n = stem;
        return;
    }
}

static void last_letter(struct word *w) {
    if (ends(w, "e")) {
        const int m = measure(w, w->n - 1);
        if (m > 1 || (m == 1 && !is_short(w, w->n - 1))) w->n--;
    }
    if (ends(w, "ll") && measure(w, w->n - 1) > 1) w->n--;
}

static int is_irregular(struct word *w) {
    static const struct rule all[] = {
        {"sky", "sky"},        {"skies", "sky"},        {"dying", "die"},
        {"lying", "lie"},      {"tying", "tie"},        {"news", "news"},
        {"innings", "inning"}, {"inning", "inning"},    {"outings", "outing"},
        {"outing", "outing"},  {"cannings", "canning"}, {"canning", "canning"},
        {"howe", "howe"},      {"proceed", "proceed"},  {"exceed", "exceed"},
        {"succeed", "succeed"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strlen(all[i].from) == w->n && ends(w, all[i].from)) {
            put(w, 0, all[i].to);
            return 1;
        }
    return 0;
}

size_t rlhf__stem(const char *word, size_t n, char out[RLHF__STEM_MOST]) {
    struct word w = {.n = n};
    if (n > RLHF__STEM_MOST - 2) return 0;
    memcpy(w.c, word, n);
    if (!is_irregular(&w) && n > 2) {
        plural(&w);
        past(&w);
        if (w.n > 2 && w.c[w.n - 1] == 'y' && is_consonant(&w, w.n - 2)) w.c[w.n - 1] = 'i';
        double_suffix(&w);
        suffix(&w);
        last_suffix(&w);
        last_letter(&w);
    }
    memcpy(out, w.c, w.n);
    return w.n;
}
