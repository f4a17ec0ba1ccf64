// letters.c: see letters.h.
#include "grader/letters.h"

#include "process/utf8.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

struct range {
    uint32_t first, last;
};

static int is_in(uint32_t cp, const struct range *all, size_t n) {
    size_t lo = 0;
    while (lo < n) {
        const size_t mid = (lo + n) / 2;
        if (cp > all[mid].last)
            lo = mid + 1;
        else if (cp < all[mid].first)
            n = mid;
        else
            return 1;
    }
    return 0;
}

int rlhf__letter_is_space(uint32_t cp) {
    static const struct range all[] = {
        {0x09, 0x0d},     {0x1c, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
        {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};
    return is_in(cp, all, COUNT(all));
}

int rlhf__letter_is_word(uint32_t cp) {
    static const struct range others[] = {
        {0x00, 0x2f},       {0x3a, 0x40},       {0x5b, 0x5e},       {0x60, 0x60},
        {0x7b, 0xa9},       {0xab, 0xb1},       {0xb4, 0xb4},       {0xb6, 0xb8},
        {0xbb, 0xbb},       {0xbf, 0xbf},       {0xd7, 0xd7},       {0xf7, 0xf7},
        {0x2c2, 0x2c5},     {0x2d2, 0x2df},     {0x2e5, 0x2eb},     {0x2ed, 0x2ed},
        {0x2ef, 0x36f},     {0x375, 0x375},     {0x37e, 0x37e},     {0x384, 0x385},
        {0x387, 0x387},     {0x3f6, 0x3f6},     {0x482, 0x489},     {0x55a, 0x55f},
        {0x589, 0x5cf},     {0x5f3, 0x61f},     {0x64b, 0x65f},     {0x66a, 0x66d},
        {0x6d4, 0x6d4},     {0x964, 0x965},     {0x1ab0, 0x1aff},   {0x1dc0, 0x1dff},
        {0x2000, 0x206f},   {0x207a, 0x207e},   {0x208a, 0x208f},   {0x20a0, 0x2101},
        {0x2103, 0x2106},   {0x2108, 0x2109},   {0x2116, 0x2118},   {0x211e, 0x2123},
        {0x2190, 0x245f},   {0x249c, 0x24b5},   {0x2500, 0x2775},   {0x2794, 0x2bff},
        {0x2ce5, 0x2cea},   {0x2e00, 0x2e2e},   {0x2e30, 0x3004},   {0x3008, 0x3020},
        {0x302a, 0x3030},   {0x3036, 0x3037},   {0x303d, 0x3040},   {0x3099, 0x309c},
        {0x30a0, 0x30a0},   {0x30fb, 0x30fb},   {0x3190, 0x3191},   {0x31c0, 0x31ef},
        {0xa490, 0xa4cf},   {0xd800, 0xf8ff},   {0xfe00, 0xfe6f},   {0xfeff, 0xff0f},
        {0xff1a, 0xff20},   {0xff3b, 0xff40},   {0xff5b, 0xff65},   {0xffe0, 0xffff},
        {0x1d000, 0x1d3ff}, {0x1f000, 0x1f0ff}, {0x1f10d, 0x1fbef}, {0xe0000, 0x10ffff}};
    return !is_in(cp, others, COUNT(others));
}

uint32_t rlhf__letter_lower(uint32_t cp) {
    // Letters `first`, `first` + step, ... up to `last` become small when `add` is added.
    static const struct {
        uint32_t first, last;
        int32_t step, add;
    } all[] = {{0x41, 0x5a, 1, 32},    {0xc0, 0xd6, 1, 32},     {0xd8, 0xde, 1, 32},
               {0x100, 0x12e, 2, 1},   {0x130, 0x130, 1, -199}, {0x132, 0x136, 2, 1},
               {0x139, 0x147, 2, 1},   {0x14a, 0x176, 2, 1},    {0x178, 0x178, 1, -121},
               {0x179, 0x17d, 2, 1},   {0x1cd, 0x1db, 2, 1},    {0x1de, 0x1ee, 2, 1},
               {0x1f8, 0x21e, 2, 1},   {0x222, 0x232, 2, 1},    {0x386, 0x386, 1, 38},
               {0x388, 0x38a, 1, 37},  {0x38c, 0x38c, 1, 64},   {0x38e, 0x38f, 1, 63},
               {0x391, 0x3a1, 1, 32},  {0x3a3, 0x3ab, 1, 32},   {0x400, 0x40f, 1, 80},
               {0x410, 0x42f, 1, 32},  {0x460, 0x480, 2, 1},    {0x48a, 0x4be, 2, 1},
               {0x4c0, 0x4c0, 1, 15},  {0x4c1, 0x4cd, 2, 1},    {0x4d0, 0x52e, 2, 1},
               {0x531, 0x556, 1, 48},  {0x1e00, 0x1e94, 2, 1},  {0x1e9e, 0x1e9e, 1, -7615},
               {0x1ea0, 0x1efe, 2, 1}, {0x2160, 0x216f, 1, 16}, {0x24b6, 0x24cf, 1, 26},
               {0xff21, 0xff3a, 1, 32}};
    if (cp < 0x80) return cp >= 'A' && cp <= 'Z' ? cp + 32 : cp;
    for (size_t i = 0; i < COUNT(all) && cp >= all[i].first; i++)
        if (cp <= all[i].last && (cp - all[i].first) % (uint32_t)all[i].step == 0)
            return (uint32_t)((int32_t)cp + all[i].add);
    return cp;
}

uint32_t rlhf__letter_next(rlhf_str text, uint64_t *at) {
    uint32_t cp = 0xfffd;
    size_t bad = 1;
    const size_t n = rlhf__utf8_read(text.ptr + *at, (size_t)(text.len - *at), &cp, &bad);
    *at += n ? n : bad;
    return n ? cp : 0xfffd;
}

void rlhf__letter_put(struct rlhf__bytes *to, uint32_t cp) {
    char c[4];
    size_t n = 0;
    if (cp < 0x80)
        c[n++] = (char)cp;
    else {
        if (cp < 0x800)
            c[n++] = (char)(0xc0 | cp >> 6);
        else {
            if (cp < 0x10000)
                c[n++] = (char)(0xe0 | cp >> 12);
            else {
                c[n++] = (char)(0xf0 | cp >> 18);
                c[n++] = (char)(0x80 | (cp >> 12 & 0x3f));
            }
            c[n++] = (char)(0x80 | (cp >> 6 & 0x3f));
        }
        c[n++] = (char)(0x80 | (cp & 0x3f));
    }
    rlhf__bytes_add(to, c, n);
}

void rlhf__letters_lower(struct rlhf__bytes *to, rlhf_str text) {
    for (uint64_t at = 0; at < text.len;)
        rlhf__letter_put(to, rlhf__letter_lower(rlhf__letter_next(text, &at)));
}

rlhf_status rlhf__letters_init(struct rlhf__letters *l, const rlhf_host *h, rlhf_str text) {
    l->n = 0;
    l->of = h->alloc(h, (text.len + 1) * sizeof *l->of);
    if (!l->of) return (h->fail)(h, RLHF_E_NOMEM, "out of memory");
    for (uint64_t at = 0; at < text.len;)
        l->of[l->n++] = rlhf__letter_next(text, &at);
    return RLHF_OK;
}
