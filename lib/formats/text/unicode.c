// unicode.c: see unicode.h.
#include "text/unicode.h"

#include <string.h>

// ---- UTF-8 ----

// Returns how many continuation bytes follow the lead byte c, or -1 if c cannot begin a character.
// Sets [*lo, *hi] to the allowed range of the first of these bytes.
static int lead(uint8_t c, uint8_t *lo, uint8_t *hi) {
    *lo = 0x80;
    *hi = 0xBF;
    if (c >= 0xC2 && c <= 0xDF) return 1;
    if (c >= 0xE0 && c <= 0xEF) {
        if (c == 0xE0) *lo = 0xA0;
        if (c == 0xED) *hi = 0x9F;
        return 2;
    }
    if (c >= 0xF0 && c <= 0xF4) {
        if (c == 0xF0) *lo = 0x90;
        if (c == 0xF4) *hi = 0x8F;
        return 3;
    }
    return -1;
}

size_t rlhf__utf8_next(const char *s, size_t n, uint32_t *cp, size_t *bad) {
    uint8_t c = (uint8_t)s[0], lo, hi;
    if (c < 0x80) {
        if (cp) *cp = c;
        return 1;
    }
    int more = lead(c, &lo, &hi);
    uint32_t v = more < 0 ? 0 : c & (0x3Fu >> more);
    for (int i = 1; i <= more; i++) {
        uint8_t d = (size_t)i < n ? (uint8_t)s[i] : 0;
        if (d < lo || d > hi) {
            if (bad) *bad = (size_t)i;
            return 0;
        }
        v = (v << 6) | (d & 0x3F);
        lo = 0x80;
        hi = 0xBF;
    }
    if (more < 0) {
        if (bad) *bad = 1;
        return 0;
    }
    if (cp) *cp = v;
    return (size_t)more + 1;
}

size_t rlhf__utf8_valid(const char *s, size_t n) {
    size_t i = 0;
    while (i < n) {
        uint64_t w;
        if (n - i >= sizeof w) { // checks eight ASCII bytes at a time
            memcpy(&w, s + i, sizeof w);
            if (!(w & 0x8080808080808080u)) {
                i += sizeof w;
                continue;
            }
        }
        size_t len = rlhf__utf8_next(s + i, n - i, NULL, NULL);
        if (!len) return i;
        i += len;
    }
    return n;
}

size_t rlhf__utf8_put(uint32_t cp, char *out) {
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xC0 | (cp >> 6));
        out[1] = (char)(0x80 | (cp & 0x3F));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xE0 | (cp >> 12));
        out[1] = (char)(0x80 | ((cp >> 6) & 0x3F));
        out[2] = (char)(0x80 | (cp & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | (cp >> 18));
    out[1] = (char)(0x80 | ((cp >> 12) & 0x3F));
    out[2] = (char)(0x80 | ((cp >> 6) & 0x3F));
    out[3] = (char)(0x80 | (cp & 0x3F));
    return 4;
}

size_t rlhf__utf8_repair(const char *s, size_t n, char *out, size_t cap) {
    size_t len = 0;
    int room = 1;
    for (size_t i = 0; i < n;) {
        size_t bad = 1, step = rlhf__utf8_next(s + i, n - i, NULL, &bad);
        const char *from = step ? s + i : "\xEF\xBF\xBD";
        size_t bytes = step ? step : 3;
        room = room && cap >= len && bytes <= cap - len; // write no more when full
        if (room) memcpy(out + len, from, bytes);
        len += bytes;
        i += step ? step : bad;
    }
    return len;
}

// ---- what Unicode 15, 15.1 and 16 added to Unicode 14 ----

enum {
    LU = UTF8PROC_CATEGORY_LU,
    LL = UTF8PROC_CATEGORY_LL,
    LM = UTF8PROC_CATEGORY_LM,
    LO = UTF8PROC_CATEGORY_LO,
    MN = UTF8PROC_CATEGORY_MN,
    MC = UTF8PROC_CATEGORY_MC,
    ND = UTF8PROC_CATEGORY_ND,
    NO = UTF8PROC_CATEGORY_NO,
    PD = UTF8PROC_CATEGORY_PD,
    PO = UTF8PROC_CATEGORY_PO,
    SM = UTF8PROC_CATEGORY_SM,
    SO = UTF8PROC_CATEGORY_SO,
    CF = UTF8PROC_CATEGORY_CF
};

static const struct {
    uint32_t first, last;
    uint8_t category;
} added[] = {
    {0x897, 0x897, MN},     {0xCF3, 0xCF3, MC},     {0xECE, 0xECE, MN},     {0x1B4E, 0x1B4F, PO},
    {0x1B7F, 0x1B7F, PO},   {0x1C89, 0x1C89, LU},   {0x1C8A, 0x1C8A, LL},   {0x2427, 0x2429, SO},
    {0x2FFC, 0x2FFF, SO},   {0x31E4, 0x31E5, SO},   {0x31EF, 0x31EF, SO},   {0xA7CB, 0xA7CC, LU},
    {0xA7CD, 0xA7CD, LL},   {0xA7DA, 0xA7DA, LU},   {0xA7DB, 0xA7DB, LL},   {0xA7DC, 0xA7DC, LU},
    {0x105C0, 0x105F3, LO}, {0x10D40, 0x10D49, ND}, {0x10D4A, 0x10D4D, LO}, {0x10D4E, 0x10D4E, LM},
    {0x10D4F, 0x10D4F, LO}, {0x10D50, 0x10D65, LU}, {0x10D69, 0x10D6D, MN}, {0x10D6E, 0x10D6E, PD},
    {0x10D6F, 0x10D6F, LM}, {0x10D70, 0x10D85, LL}, {0x10D8E, 0x10D8F, SM}, {0x10EC2, 0x10EC4, LO},
    {0x10EFC, 0x10EFF, MN}, {0x1123F, 0x11240, LO}, {0x11241, 0x11241, MN}, {0x11380, 0x11389, LO},
    {0x1138B, 0x1138B, LO}, {0x1138E, 0x1138E, LO}, {0x11390, 0x113B5, LO}, {0x113B7, 0x113B7, LO},
    {0x113B8, 0x113BA, MC}, {0x113BB, 0x113C0, MN}, {0x113C2, 0x113C2, MC}, {0x113C5, 0x113C5, MC},
    {0x113C7, 0x113CA, MC}, {0x113CC, 0x113CD, MC}, {0x113CE, 0x113CE, MN}, {0x113CF, 0x113CF, MC},
    {0x113D0, 0x113D0, MN}, {0x113D1, 0x113D1, LO}, {0x113D2, 0x113D2, MN}, {0x113D3, 0x113D3, LO},
    {0x113D4, 0x113D5, PO}, {0x113D7, 0x113D8, PO}, {0x113E1, 0x113E2, MN}, {0x116D0, 0x116E3, ND},
    {0x11B00, 0x11B09, PO}, {0x11BC0, 0x11BE0, LO}, {0x11BE1, 0x11BE1, PO}, {0x11BF0, 0x11BF9, ND},
    {0x11F00, 0x11F01, MN}, {0x11F02, 0x11F02, LO}, {0x11F03, 0x11F03, MC}, {0x11F04, 0x11F10, LO},
    {0x11F12, 0x11F33, LO}, {0x11F34, 0x11F35, MC}, {0x11F36, 0x11F3A, MN}, {0x11F3E, 0x11F3F, MC},
    {0x11F40, 0x11F40, MN}, {0x11F41, 0x11F41, MC}, {0x11F42, 0x11F42, MN}, {0x11F43, 0x11F4F, PO},
    {0x11F50, 0x11F59, ND}, {0x11F5A, 0x11F5A, MN}, {0x1342F, 0x1342F, LO}, {0x13439, 0x1343F, CF},
    {0x13440, 0x13440, MN}, {0x13441, 0x13446, LO}, {0x13447, 0x13455, MN}, {0x13460, 0x143FA, LO},
    {0x16100, 0x1611D, LO}, {0x1611E, 0x16129, MN}, {0x1612A, 0x1612C, MC}, {0x1612D, 0x1612F, MN},
    {0x16130, 0x16139, ND}, {0x16D40, 0x16D42, LM}, {0x16D43, 0x16D6A, LO}, {0x16D6B, 0x16D6C, LM},
    {0x16D6D, 0x16D6F, PO}, {0x16D70, 0x16D79, ND}, {0x18CFF, 0x18CFF, LO}, {0x1B132, 0x1B132, LO},
    {0x1B155, 0x1B155, LO}, {0x1CC00, 0x1CCEF, SO}, {0x1CCF0, 0x1CCF9, ND}, {0x1CD00, 0x1CEB3, SO},
    {0x1D2C0, 0x1D2D3, NO}, {0x1DF25, 0x1DF2A, LL}, {0x1E030, 0x1E06D, LM}, {0x1E08F, 0x1E08F, MN},
    {0x1E4D0, 0x1E4EA, LO}, {0x1E4EB, 0x1E4EB, LM}, {0x1E4EC, 0x1E4EF, MN}, {0x1E4F0, 0x1E4F9, ND},
    {0x1E5D0, 0x1E5ED, LO}, {0x1E5EE, 0x1E5EF, MN}, {0x1E5F0, 0x1E5F0, LO}, {0x1E5F1, 0x1E5FA, ND},
    {0x1E5FF, 0x1E5FF, PO}, {0x1F6DC, 0x1F6DC, SO}, {0x1F774, 0x1F776, SO}, {0x1F77B, 0x1F77F, SO},
    {0x1F7D9, 0x1F7D9, SO}, {0x1F8B2, 0x1F8BB, SO}, {0x1F8C0, 0x1F8C1, SO}, {0x1FA75, 0x1FA77, SO},
    {0x1FA87, 0x1FA89, SO}, {0x1FA8F, 0x1FA8F, SO}, {0x1FAAD, 0x1FAAF, SO}, {0x1FABB, 0x1FABF, SO},
    {0x1FAC6, 0x1FAC6, SO}, {0x1FACE, 0x1FACF, SO}, {0x1FADA, 0x1FADC, SO}, {0x1FADF, 0x1FADF, SO},
    {0x1FAE8, 0x1FAE9, SO}, {0x1FAF7, 0x1FAF8, SO}, {0x1FBCB, 0x1FBEF, SO}, {0x2B739, 0x2B739, LO},
    {0x2EBF0, 0x2EE5D, LO}, {0x31350, 0x323AF, LO},
};
enum { N = sizeof added / sizeof *added };

int rlhf__unicode_new(size_t i, struct rlhf__unicode_range *out) {
    if (i >= N) return 0;
    *out = (struct rlhf__unicode_range){added[i].first, added[i].last,
                                        (utf8proc_category_t)added[i].category};
    return 1;
}

utf8proc_category_t rlhf__unicode_category(uint32_t cp) {
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)cp);
    if (category != UTF8PROC_CATEGORY_CN) return category;
    size_t low = 0, high = N;
    while (low < high) { // the first entry that does not end before cp
        size_t mid = (low + high) / 2;
        if (added[mid].last < cp)
            low = mid + 1;
        else
            high = mid;
    }
    return low < N && added[low].first <= cp ? (utf8proc_category_t)added[low].category : category;
}

// ---- kinds of characters ----

struct range {
    uint32_t first, last;
};

static int is_in(uint32_t cp, const struct range *list, size_t n) {
    size_t low = 0, high = n;
    while (low < high) { // the first entry that does not end before cp
        size_t mid = (low + high) / 2;
        if (list[mid].last < cp)
            low = mid + 1;
        else
            high = mid;
    }
    return low < n && list[low].first <= cp;
}
#define IS_IN(cp, list) is_in(cp, list, sizeof(list) / sizeof *(list))

static int is_one_of(uint32_t cp, utf8proc_category_t first, utf8proc_category_t last) {
    utf8proc_category_t category = rlhf__unicode_category(cp);
    return category >= first && category <= last;
}

int rlhf__unicode_is_space(uint32_t cp) {
    if (cp < 0x80) return cp == ' ' || (cp >= '\t' && cp <= '\r');
    return cp == 0x85 || is_one_of(cp, UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_ZP);
}

int rlhf__unicode_is_number(uint32_t cp) {
    static const struct range since_17[] = {{0x11DE0, 0x11DE9}, {0x16FF4, 0x16FF6}};
    if (cp < 0x80) return cp >= '0' && cp <= '9';
    return is_one_of(cp, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO) || IS_IN(cp, since_17);
}

// Punctuation that was added after Unicode 8.
static const struct range young_punct[] = {
    {0x61D, 0x61D},     {0x9FD, 0x9FD},     {0xA76, 0xA76},     {0xC77, 0xC77},
    {0xC84, 0xC84},     {0x1B7D, 0x1B7E},   {0x2E43, 0x2E4F},   {0x2E52, 0x2E5D},
    {0x10EAD, 0x10EAD}, {0x10F55, 0x10F59}, {0x10F86, 0x10F89}, {0x1144B, 0x1144F},
    {0x1145A, 0x1145B}, {0x1145D, 0x1145D}, {0x11660, 0x1166C}, {0x116B9, 0x116B9},
    {0x1183B, 0x1183B}, {0x11944, 0x11946}, {0x119E2, 0x119E2}, {0x11A3F, 0x11A46},
    {0x11A9A, 0x11A9C}, {0x11A9E, 0x11AA2}, {0x11B00, 0x11B09}, {0x11C41, 0x11C45},
    {0x11C70, 0x11C71}, {0x11EF7, 0x11EF8}, {0x11F43, 0x11F4F}, {0x11FFF, 0x11FFF},
    {0x12FF1, 0x12FF2}, {0x16E97, 0x16E9A}, {0x16FE2, 0x16FE2}, {0x1E95E, 0x1E95F},
};

int rlhf__unicode_is_punct(uint32_t cp) {
    if (cp < 0x80)
        return (cp >= '!' && cp <= '/') || (cp >= ':' && cp <= '@') || (cp >= '[' && cp <= '`') ||
               (cp >= '{' && cp <= '~');
    if (cp == 0x166D || cp == 0x111C9) return 1; // punctuation in Unicode 8
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)cp);
    return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO &&
           !IS_IN(cp, young_punct);
}

size_t rlhf__unicode_lower(uint32_t cp, uint32_t out[2]) {
    static const struct {
        struct range range;
        int32_t by;
    } since_16[] = {
        {{0x1C89, 0x1C89}, 1},    {{0xA7CB, 0xA7CB}, -42343}, {{0xA7CC, 0xA7CC}, 1},
        {{0xA7CE, 0xA7CE}, 1},    {{0xA7D2, 0xA7D2}, 1},      {{0xA7D4, 0xA7D4}, 1},
        {{0xA7DA, 0xA7DA}, 1},    {{0xA7DC, 0xA7DC}, -42561}, {{0x10D50, 0x10D65}, 32},
        {{0x16EA0, 0x16EB8}, 27},
    };
    out[0] = cp;
    if (cp < 0x80) {
        if (cp >= 'A' && cp <= 'Z') out[0] = cp + 32;
        return 1;
    }
    if (cp == 0x130) { // the only character whose lower case has two code points
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    out[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp);
    for (size_t i = 0; out[0] == cp && i < sizeof since_16 / sizeof *since_16; i++)
        if (cp >= since_16[i].range.first && cp <= since_16[i].range.last)
            out[0] = (uint32_t)((int32_t)cp + since_16[i].by);
    return 1;
}

// Marks that were added after Unicode 9.
static const struct range young_marks[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},
    {0xAFA, 0xAFF},     {0xB55, 0xB55},     {0xC04, 0xC04},     {0xC3C, 0xC3C},
    {0xCF3, 0xCF3},     {0xD00, 0xD00},     {0xD3B, 0xD3C},     {0xD81, 0xD81},
    {0xEBA, 0xEBA},     {0xECE, 0xECE},     {0x1715, 0x1715},   {0x180F, 0x180F},
    {0x1ABF, 0x1ACE},   {0x1CF7, 0x1CF7},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},
    {0xA8FF, 0xA8FF},   {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF},
    {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x11073, 0x11074},
    {0x110C2, 0x110C2}, {0x11145, 0x11146}, {0x111C9, 0x111C9}, {0x111CE, 0x111CF},
    {0x11241, 0x11241}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x1182C, 0x1183A},
    {0x11930, 0x11935}, {0x11937, 0x11938}, {0x1193B, 0x1193E}, {0x11940, 0x11940},
    {0x11942, 0x11943}, {0x119D1, 0x119D7}, {0x119DA, 0x119E0}, {0x119E4, 0x119E4},
    {0x11A01, 0x11A0A}, {0x11A33, 0x11A39}, {0x11A3B, 0x11A3E}, {0x11A47, 0x11A47},
    {0x11A51, 0x11A5B}, {0x11A8A, 0x11A99}, {0x11D31, 0x11D36}, {0x11D3A, 0x11D3A},
    {0x11D3C, 0x11D3D}, {0x11D3F, 0x11D45}, {0x11D47, 0x11D47}, {0x11D8A, 0x11D8E},
    {0x11D90, 0x11D91}, {0x11D93, 0x11D97}, {0x11EF3, 0x11EF6}, {0x11F00, 0x11F01},
    {0x11F03, 0x11F03}, {0x11F34, 0x11F3A}, {0x11F3E, 0x11F42}, {0x13440, 0x13440},
    {0x13447, 0x13455}, {0x16F4F, 0x16F4F}, {0x16F7F, 0x16F87}, {0x16FE4, 0x16FE4},
    {0x16FF0, 0x16FF1}, {0x1CF00, 0x1CF2D}, {0x1CF30, 0x1CF46}, {0x1E08F, 0x1E08F},
    {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF},
};

// Characters newer than Unicode 9 that have a compatibility decomposition.
static const struct range young_forms[] = {
    {0x32FF, 0x32FF},   {0xA7F2, 0xA7F4},   {0xAB69, 0xAB69},   {0x10781, 0x107BA},
    {0x1E030, 0x1E06D}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9},
};

int rlhf__unicode_is_young(uint32_t cp) {
    return cp >= 0x7FD && (IS_IN(cp, young_marks) || IS_IN(cp, young_forms));
}

int rlhf__unicode_is_mark(uint32_t cp) {
    if (cp < 0x300) return 0;
    if (cp == 0x1CF2 || cp == 0x1CF3) return 1; // marks in Unicode 9
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)cp);
    return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME &&
           !IS_IN(cp, young_marks);
}

int rlhf__unicode_is_control(uint32_t cp) {
    static const struct range young[] = {
        {0x890, 0x891}, {0x8E2, 0x8E2}, {0x110CD, 0x110CD}, {0x13430, 0x1343F}};
    if (cp < 0x80) return (cp < ' ' && cp != '\t' && cp != '\n' && cp != '\r') || cp == 0x7F;
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CO ||
           (c == UTF8PROC_CATEGORY_CF && !IS_IN(cp, young));
}

int rlhf__unicode_is_accent(uint32_t cp) {
    // Marks that are newer than Unicode 8 but not newer than Unicode 9. BERT's accents follow
    // Unicode 8, and the normal forms follow Unicode 9.
    static const struct range young[] = {
        {0x8D4, 0x8E1},     {0x1885, 0x1886},   {0x1DFB, 0x1DFB},   {0xA8C5, 0xA8C5},
        {0xA9BD, 0xA9BD},   {0x1123E, 0x1123E}, {0x11438, 0x1143F}, {0x11442, 0x11444},
        {0x11446, 0x11446}, {0x11C30, 0x11C36}, {0x11C38, 0x11C3D}, {0x11C3F, 0x11C3F},
        {0x11C92, 0x11CA7}, {0x11CAA, 0x11CB0}, {0x11CB2, 0x11CB3}, {0x11CB5, 0x11CB6},
        {0x1E000, 0x1E006}, {0x1E008, 0x1E018}, {0x1E01B, 0x1E021}, {0x1E023, 0x1E024},
        {0x1E026, 0x1E02A}, {0x1E944, 0x1E94A}};
    if (cp < 0x300) return 0;
    if (cp == 0x1734) return 1; // a mark in Unicode 9
    return utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_MN &&
           !IS_IN(cp, young_marks) && !IS_IN(cp, young);
}

int rlhf__unicode_is_word(uint32_t cp) {
    if ((cp >= 0x24B6 && cp <= 0x24E9) || (cp >= 0x1F130 && cp <= 0x1F149) ||
        (cp >= 0x1F150 && cp <= 0x1F169) || (cp >= 0x1F170 && cp <= 0x1F189) || cp == 0x200C ||
        cp == 0x200D)
        return 1;
    switch (rlhf__unicode_category(cp)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
        return 1;
    default:
        return 0;
    }
}
