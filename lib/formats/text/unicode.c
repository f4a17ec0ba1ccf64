// unicode.c: see unicode.h. The lists are what the tokenizers library was seen to do with every
// code point.
#include "text/unicode.h"

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

// Punctuation that came after Unicode 8.
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
    if (cp == 0x166D || cp == 0x111C9) return 1; // were punctuation then
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
    if (cp == 0x130) { // the one character whose lower case is two
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

// Marks that came after Unicode 9.
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

// Characters with a compatibility decomposition that came after it.
static const struct range young_forms[] = {
    {0x32FF, 0x32FF},   {0xA7F2, 0xA7F4},   {0xAB69, 0xAB69},   {0x10781, 0x107BA},
    {0x1E030, 0x1E06D}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9},
};

int rlhf__unicode_is_young(uint32_t cp) {
    return cp >= 0x7FD && (IS_IN(cp, young_marks) || IS_IN(cp, young_forms));
}

int rlhf__unicode_is_mark(uint32_t cp) {
    if (cp < 0x300) return 0;
    if (cp == 0x1CF2 || cp == 0x1CF3) return 1; // were marks then
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
    // Of Unicode 9, whose marks are not young to normal forms.
    static const struct range young[] = {
        {0x8D4, 0x8E1},     {0x1885, 0x1886},   {0x1DFB, 0x1DFB},   {0xA8C5, 0xA8C5},
        {0xA9BD, 0xA9BD},   {0x1123E, 0x1123E}, {0x11438, 0x1143F}, {0x11442, 0x11444},
        {0x11446, 0x11446}, {0x11C30, 0x11C36}, {0x11C38, 0x11C3D}, {0x11C3F, 0x11C3F},
        {0x11C92, 0x11CA7}, {0x11CAA, 0x11CB0}, {0x11CB2, 0x11CB3}, {0x11CB5, 0x11CB6},
        {0x1E000, 0x1E006}, {0x1E008, 0x1E018}, {0x1E01B, 0x1E021}, {0x1E023, 0x1E024},
        {0x1E026, 0x1E02A}, {0x1E944, 0x1E94A}};
    if (cp < 0x300) return 0;
    if (cp == 0x1734) return 1; // was one then
    return utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_MN &&
           !IS_IN(cp, young_marks) && !IS_IN(cp, young);
}
