// jinja_letter.c: see jinja_letter.h.
#include "values/jinja_letter.h"

#include "base/printable.h"

#include <string.h>
#include <utf8proc.h>

struct range {
    uint32_t first, last;
};

static int is_in(uint32_t cp, const struct range *list, size_t n) {
    for (size_t i = 0; i < n && list[i].first <= cp; i++)
        if (cp <= list[i].last) return 1;
    return 0;
}
#define IS_IN(cp, list) is_in(cp, list, sizeof(list) / sizeof *(list))

static utf8proc_category_t category(uint32_t cp) { return utf8proc_category((utf8proc_int32_t)cp); }

// Letters that are lower or upper case although they are not of category Ll or Lu (Other_Lowercase
// and Other_Uppercase in Unicode).
static const struct range other_lower[] = {
    {0xAA, 0xAA},       {0xBA, 0xBA},       {0x2B0, 0x2B8},     {0x2C0, 0x2C1},    {0x2E0, 0x2E4},
    {0x345, 0x345},     {0x37A, 0x37A},     {0x1D2C, 0x1D6A},   {0x1D78, 0x1D78},  {0x1D9B, 0x1DBF},
    {0x2071, 0x2071},   {0x207F, 0x207F},   {0x2090, 0x209C},   {0x2170, 0x217F},  {0x24D0, 0x24E9},
    {0x2C7C, 0x2C7D},   {0xA69C, 0xA69D},   {0xA770, 0xA770},   {0xA7F8, 0xA7F9},  {0xAB5C, 0xAB5F},
    {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA}};
static const struct range other_upper[] = {
    {0x2160, 0x216F}, {0x24B6, 0x24CF}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};

// Letters whose upper case has several code points (SpecialCasing.txt in Unicode). It is the upper
// case of the parts into which the letter decomposes.
static const struct range long_upper[] = {
    {0xDF, 0xDF},     {0x149, 0x149},   {0x1F0, 0x1F0},   {0x390, 0x390},   {0x3B0, 0x3B0},
    {0x587, 0x587},   {0x1E96, 0x1E9A}, {0x1F50, 0x1F50}, {0x1F52, 0x1F52}, {0x1F54, 0x1F54},
    {0x1F56, 0x1F56}, {0x1F80, 0x1FAF}, {0x1FB2, 0x1FB4}, {0x1FB6, 0x1FB7}, {0x1FBC, 0x1FBC},
    {0x1FC2, 0x1FC4}, {0x1FC6, 0x1FC7}, {0x1FCC, 0x1FCC}, {0x1FD2, 0x1FD3}, {0x1FD6, 0x1FD7},
    {0x1FE2, 0x1FE4}, {0x1FE6, 0x1FE7}, {0x1FF2, 0x1FF4}, {0x1FF6, 0x1FF7}, {0x1FFC, 0x1FFC},
    {0xFB00, 0xFB06}, {0xFB13, 0xFB17}};

// ---- kinds ----

int rlhf__letter_is_lower(uint32_t cp) {
    if (cp < 0x80) return cp >= 'a' && cp <= 'z';
    return category(cp) == UTF8PROC_CATEGORY_LL || IS_IN(cp, other_lower);
}

int rlhf__letter_is_upper(uint32_t cp) {
    if (cp < 0x80) return cp >= 'A' && cp <= 'Z';
    return category(cp) == UTF8PROC_CATEGORY_LU || IS_IN(cp, other_upper);
}

int rlhf__letter_is_title(uint32_t cp) { return category(cp) == UTF8PROC_CATEGORY_LT; }

int rlhf__letter_is_cased(uint32_t cp) {
    return rlhf__letter_is_lower(cp) || rlhf__letter_is_upper(cp) || rlhf__letter_is_title(cp);
}

int rlhf__letter_is_ignorable(uint32_t cp) {
    static const struct range signs[] = {
        {0x27, 0x27},     {0x2E, 0x2E},     {0x3A, 0x3A},     {0xB7, 0xB7},
        {0x387, 0x387},   {0x55F, 0x55F},   {0x5F4, 0x5F4},   {0x2018, 0x2019},
        {0x2024, 0x2024}, {0x2027, 0x2027}, {0xFE13, 0xFE13}, {0xFE52, 0xFE52},
        {0xFE55, 0xFE55}, {0xFF07, 0xFF07}, {0xFF0E, 0xFF0E}, {0xFF1A, 0xFF1A}};
    const utf8proc_category_t c = category(cp);
    return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_ME || c == UTF8PROC_CATEGORY_CF ||
           c == UTF8PROC_CATEGORY_LM || c == UTF8PROC_CATEGORY_SK || IS_IN(cp, signs);
}

int rlhf__letter_is_alpha(uint32_t cp) {
    const utf8proc_category_t c = category(cp);
    return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

int rlhf__letter_is_decimal(uint32_t cp) { return category(cp) == UTF8PROC_CATEGORY_ND; }

int rlhf__letter_is_digit(uint32_t cp) {
    static const struct range others[] = {
        {0xB2, 0xB3},       {0xB9, 0xB9},       {0x1369, 0x1371},   {0x19DA, 0x19DA},
        {0x2070, 0x2070},   {0x2074, 0x2079},   {0x2080, 0x2089},   {0x2460, 0x2468},
        {0x2474, 0x247C},   {0x2488, 0x2490},   {0x24EA, 0x24EA},   {0x24F5, 0x24FD},
        {0x24FF, 0x24FF},   {0x2776, 0x277E},   {0x2780, 0x2788},   {0x278A, 0x2792},
        {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A}, {0x1F100, 0x1F10A}};
    return rlhf__letter_is_decimal(cp) || IS_IN(cp, others);
}

int rlhf__letter_is_alnum(uint32_t cp) {
    const utf8proc_category_t c = category(cp);
    return rlhf__letter_is_alpha(cp) || (c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO);
}

int rlhf__letter_is_space(uint32_t cp) {
    return (cp >= 0x09 && cp <= 0x0d) || (cp >= 0x1c && cp <= 0x20) || cp == 0x85 || cp == 0xa0 ||
           cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 || cp == 0x2029 ||
           cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

int rlhf__letter_is_line_end(uint32_t cp) {
    return (cp >= 0x0a && cp <= 0x0d) || (cp >= 0x1c && cp <= 0x1e) || cp == 0x85 || cp == 0x2028 ||
           cp == 0x2029;
}

int rlhf__letter_is_printable(uint32_t cp) {
    switch (category(cp)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return 0;
    case UTF8PROC_CATEGORY_ZS:
        return cp == ' ';
    default:
        return 1;
    }
}

int rlhf__letter_is_name(uint32_t cp) {
    const utf8proc_category_t c = category(cp);
    return cp == '_' || rlhf__letter_is_alpha(cp) || c == UTF8PROC_CATEGORY_MN ||
           c == UTF8PROC_CATEGORY_MC || c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL ||
           c == UTF8PROC_CATEGORY_PC;
}

int rlhf__letter_digit(uint32_t cp) {
    uint32_t zero = cp; // digits come in rows of ten, and no row follows a part of another
    if (cp >= 0x1D7CE && cp <= 0x1D7FF) return (int)((cp - 0x1D7CE) % 10);
    while (cp - zero < 9 && rlhf__letter_is_decimal(zero - 1))
        zero--;
    return (int)(cp - zero);
}

// ---- cases ----

// The parts of a letter with a long upper case. *iota is set to 1 if the last part is an iota below
// the letter, which is left out; the other parts are then one letter, if that has an upper case.
static size_t parts_of(uint32_t cp, utf8proc_int32_t *part, int *iota) {
    int last = 0;
    utf8proc_option_t how = UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
    if (cp == 0xDF) how |= UTF8PROC_CASEFOLD; // "ss"
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)cp, part, 8, how, &last);
    if (n < 1 || n > 8) {
        part[0] = (utf8proc_int32_t)cp;
        return 1;
    }
    *iota = n > 1 && part[n - 1] == 0x345;
    if (!*iota) return (size_t)n;
    utf8proc_int32_t one[8];
    memcpy(one, part, sizeof one);
    const utf8proc_ssize_t left = utf8proc_normalize_utf32(one, n - 1, UTF8PROC_COMPOSE);
    if (left != 1 ||
        (category((uint32_t)one[0]) == UTF8PROC_CATEGORY_LL && utf8proc_toupper(one[0]) == one[0]))
        return (size_t)n - 1;
    part[0] = one[0];
    return 1;
}

static size_t long_case(enum rlhf__letter_case to, uint32_t cp, uint32_t *out) {
    utf8proc_int32_t part[8];
    int iota = 0, done = 0;
    size_t n = parts_of(cp, part, &iota);
    if (n > 3) n = 3;
    for (size_t i = 0; i < n; i++) {
        const utf8proc_int32_t up = utf8proc_toupper(part[i]);
        out[i] = (uint32_t)(to == RLHF__LETTER_UPPER || !done ? up : part[i]);
        done |= up != part[i] || iota;
    }
    if (iota) out[n++] = to == RLHF__LETTER_UPPER ? 0x399 : 0x345;
    return n;
}

size_t rlhf__letter_to(enum rlhf__letter_case to, uint32_t cp, uint32_t out[RLHF__LETTER_MAX]) {
    const utf8proc_int32_t c = (utf8proc_int32_t)cp;
    utf8proc_int32_t folded[RLHF__LETTER_MAX];
    int last = 0;
    out[0] = cp;
    if (cp < 0x80) {
        const int up = to == RLHF__LETTER_UPPER || to == RLHF__LETTER_TITLE;
        if (up ? rlhf__letter_is_lower(cp) : rlhf__letter_is_upper(cp)) out[0] = cp ^ 0x20;
        return 1;
    }
    switch (to) {
    case RLHF__LETTER_UPPER:
        if (IS_IN(cp, long_upper)) return long_case(to, cp, out);
        out[0] = (uint32_t)utf8proc_toupper(c);
        return 1;
    case RLHF__LETTER_TITLE:
        out[0] = (uint32_t)utf8proc_totitle(c);
        // utf8proc knows the capital sharp s, which no case mapping uses.
        if ((out[0] == cp || cp == 0xDF) && rlhf__letter_is_lower(cp) && IS_IN(cp, long_upper))
            return long_case(to, cp, out);
        return 1;
    case RLHF__LETTER_LOWER:
        if (cp == 0x130) { // the only letter whose lower case has two code points
            out[0] = 'i';
            out[1] = 0x307;
            return 2;
        }
        out[0] = (uint32_t)utf8proc_tolower(c);
        return 1;
    default: {
        const utf8proc_ssize_t n =
            utf8proc_decompose_char(c, folded, RLHF__LETTER_MAX, UTF8PROC_CASEFOLD, &last);
        if (n < 1 || n > RLHF__LETTER_MAX) return 1;
        for (utf8proc_ssize_t i = 0; i < n; i++)
            out[i] = (uint32_t)folded[i];
        return (size_t)n;
    }
    }
}

// ---- UTF-8 ----

size_t rlhf__letter_at(const char *s, size_t n, uint32_t *cp) {
    const size_t size = rlhf__char_at(s, n, cp);
    if (!size) *cp = 0xFFFD;
    return size ? size : 1;
}

size_t rlhf__letter_put(uint32_t cp, char out[4]) {
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)cp, (utf8proc_uint8_t *)out);
}
