// units.c: see units.h.
#include "answer/units.h"

#include "answer/number.h"

// Returns 1 if the one or two letters are the symbol of a unit, or the ending of an ordinal number
// (1st).
static int is_symbol(const char *word, size_t n, int joined) {
    static const char all[] = " m g s h l L N J W V A K C F cm mm km dm nm um kg mg ug ml mL dl dL "
                              "cl cL kL ft in yd mi lb"
                              " oz hr hp Hz Pa kW MW kJ MJ kN eV mA mV ms ns us GB MB KB kB TB am "
                              "pm AM PM st nd rd th pt "
                              "qt ha cc ct Rs ";
    char padded[5] = " ";
    if (joined && n == 1 && *word == 'K') return 0; // 5K means five thousand
    memcpy(padded + 1, word, n);
    padded[n + 1] = ' ';
    padded[n + 2] = 0;
    return strstr(all, padded) != NULL;
}

static size_t letters(const char *at, const char *end) {
    size_t n = 0;
    while (at + n < end && rlhf__is_letter(at[n]))
        n++;
    return n;
}

int rlhf__has_variable(const char *at, const char *end) {
    const size_t n = letters(at, end);
    return n > 0 && n < 3 && !is_symbol(at, n, 1);
}

// 1 at a full stop, comma or the like that ends a sentence or a part of one.
static int is_pause(const char *at, const char *end) {
    return rlhf__is_one_of(*at, ".,;:!?") && (at + 1 == end || rlhf__is_space(at[1]));
}

int rlhf__has_unknown_symbol(const struct rlhf__cursor *c) {
    size_t unknown = 0, longest = 0;
    for (const char *at = c->at; at < c->end && !is_pause(at, c->end); at++) {
        const size_t n = letters(at, c->end);
        if (!n) continue;
        if (n > longest) longest = n;
        unknown += n < 3 && !is_symbol(at, n, 0);
        at += n - 1;
    }
    return unknown > 0 && longest < 3;
}

// 1 if a character outside ASCII at `at` is a digit, a number, a mark on the character before it or
// a sign of mathematics, so that it changes the number before it. A symbol such as a degree sign is
// a part of a unit.
static int changes_number(const char *at, const char *end) {
    static const struct {
        uint32_t first, last;
    } all[] = {{0xb1, 0xb1},     {0xf7, 0xf7},     {0x300, 0x36f},    {0x660, 0x669},
               {0x6f0, 0x6f9},   {0x7c0, 0x7c9},   {0x966, 0x96f},    {0x9e6, 0x9ef},
               {0xe50, 0xe59},   {0x2030, 0x2031}, {0x2070, 0x209c},  {0x20d0, 0x20ff},
               {0x2145, 0x218b}, {0x2190, 0x22ff}, {0x2460, 0x249b},  {0x24ea, 0x24ff},
               {0x2776, 0x2793}, {0xff01, 0xff01}, {0xff0b, 0xff0f},  {0xff10, 0xff19},
               {0xff1c, 0xff1e}, {0xff3e, 0xff3e}, {0x1d400, 0x1d7ff}};
    const unsigned char *b = (const unsigned char *)at;
    const ptrdiff_t n = b[0] >= 0xf0 ? 4 : b[0] >= 0xe0 ? 3 : 2;
    if (b[0] < 0xc2 || end - at < n) return 0;
    uint32_t code = b[0] & (0xffU >> (n + 1));
    for (ptrdiff_t i = 1; i < n; i++)
        code = code << 6 | (b[i] & 0x3f);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (code >= all[i].first && code <= all[i].last) return 1;
    return 0;
}

int rlhf__rest_is_unit(struct rlhf__cursor *c) {
    int64_t power;
    char before = ' ';
    while (rlhf__left(c)) {
        const char here = *c->at;
        if (changes_number(c->at, c->end)) return 0;
        if (here == '^') {
            if (!rlhf__is_letter(before) && before != ')') return 0;
            if (!rlhf__take_raised(c, &power)) return 0;
        } else if (here == '-') { // a hyphen between two words
            if (!rlhf__is_letter(before) || c->end - c->at < 2 || !rlhf__is_letter(c->at[1]))
                return 0;
            c->at++;
        } else if (rlhf__is_letter(here) || rlhf__is_space(here) || (unsigned char)here >= 0x80 ||
                   rlhf__is_one_of(here, "./'\"()$")) {
            c->at++;
        } else {
            return 0;
        }
        before = here;
    }
    return 1;
}
