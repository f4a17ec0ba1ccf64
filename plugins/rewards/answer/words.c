// words.c: see words.h.
#include "answer/words.h"

int rlhf__take_word(struct rlhf__cursor *c, const char *word) {
    const size_t n = strlen(word);
    if ((size_t)(c->end - c->at) < n) return 0;
    for (size_t i = 0; i < n; i++)
        if (rlhf__lower(c->at[i]) != word[i]) return 0;
    if ((size_t)(c->end - c->at) > n && rlhf__is_letter(c->at[n])) return 0;
    c->at += n;
    return 1;
}

// Moves past one of the words of a list that ends in NULL.
static int take_one_of(struct rlhf__cursor *c, const char *const *words) {
    for (; *words; words++)
        if (rlhf__take_word(c, *words)) return 1;
    return 0;
}

// ---- signs ----

static const char *const signs[] = {"minus", "negative", NULL};

int32_t rlhf__take_sign_word(struct rlhf__cursor *c) {
    struct rlhf__cursor here = *c;
    if (!take_one_of(&here, signs)) return 0;
    const char *end = here.at;
    rlhf__skip_spaces(&here);
    if (here.at == end) return 0;
    *c = here;
    return -1;
}

const char *rlhf__sign_word_before(const struct rlhf__cursor *c, const char *at) {
    const char *end = at;
    while (end > c->begin && rlhf__is_space(end[-1]))
        end--;
    if (end == at) return NULL;
    for (size_t i = 0; signs[i]; i++) {
        const size_t n = strlen(signs[i]);
        if ((size_t)(end - c->begin) < n) continue;
        struct rlhf__cursor word = {.at = end - n, .end = end};
        const int inside = end - n > c->begin && rlhf__is_letter(end[-1 - (ptrdiff_t)n]);
        if (!inside && rlhf__take_word(&word, signs[i])) return end - n;
    }
    return NULL;
}

// ---- after a number ----

int32_t rlhf__take_scale(struct rlhf__cursor *c) {
    static const struct {
        const char *word, *plural;
        int32_t power;
    } scales[] = {{"hundred", "hundreds", 2},    {"thousand", "thousands", 3},
                  {"million", "millions", 6},    {"billion", "billions", 9},
                  {"trillion", "trillions", 12}, {"quadrillion", "quadrillions", 15}};
    struct rlhf__cursor here = *c;
    int32_t power = 0;
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        while (rlhf__take_space(&here))
            continue;
        if (!rlhf__take_word(&here, scales[i].word) && !rlhf__take_word(&here, scales[i].plural))
            continue;
        power += scales[i].power;
        *c = here;
    }
    return power;
}

static int take_number_word(struct rlhf__cursor *c) {
    static const char *const all[] = {
        "half",  "quarter", "quarters", "third",  "thirds",  "one",   "two",
        "three", "four",    "five",     "six",    "seven",   "eight", "nine",
        "ten",   "eleven",  "twelve",   "twenty", "thirty",  "forty", "fifty",
        "sixty", "seventy", "eighty",   "ninety", "hundred", NULL};
    rlhf__skip_spaces(c);
    if (rlhf__take_word(c, "a") || rlhf__take_word(c, "an")) rlhf__skip_spaces(c);
    return take_one_of(c, all);
}

int rlhf__is_changed(const struct rlhf__cursor *c, int alone) {
    static const char *const always[] = {
        "dozen",       "dozens",     "lakh",       "crore",       "squared",    "cubed",
        "factorial",   "halves",     "thirds",     "fourths",     "fifths",     "sixths",
        "sevenths",    "eighths",    "ninths",     "tenths",      "hundredths", "mod",
        "thousandths", "millionths", "billionths", "trillionths", NULL};
    // Half, ten, hundred, ten thousand, hundred million and million million of Chinese and
    // Japanese.
    static const char *const characters[] = {
        "\xe5\x8d\x8a", "\xe5\x8d\x81", "\xe7\x99\xbe", "\xe4\xb8\x87", "\xe8\x90\xac",
        "\xe4\xba\xbf", "\xe5\x84\x84", "\xe5\x84\x86", "\xe5\x85\x86", NULL};
    static const char *const joining[] = {"and", "or",      "plus",   "minus",      "over",
                                          "to",  "divided", "modulo", "multiplied", NULL};
    static const char *const before_number[] = {"times", "point", "base", "root", "choose", NULL};
    struct rlhf__cursor here = *c;
    rlhf__skip_spaces(&here);
    if (take_one_of(&here, always) || take_one_of(&here, characters)) return 1;
    if (take_one_of(&here, joining)) return alone || take_number_word(&here);
    return take_one_of(&here, before_number) && take_number_word(&here);
}
