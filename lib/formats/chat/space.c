// space.c: see space.h.
#include "chat/space.h"

#include "base/printable.h"

static int is_space(uint32_t c) {
    return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

rlhf_str rlhf__space_trim(rlhf_str s, int left, int right) {
    while (left && s.len) {
        uint32_t c = 0;
        size_t n = rlhf__char_at(s.ptr, (size_t)s.len, &c);
        if (!n || !is_space(c)) break;
        s.ptr += n;
        s.len -= n;
    }
    while (right && s.len) {
        uint32_t c = 0;
        size_t back = 1;
        while (back < 4 && back < s.len && ((unsigned char)s.ptr[s.len - back] & 0xc0) == 0x80)
            back++;
        if (rlhf__char_at(s.ptr + s.len - back, back, &c) != back || !is_space(c)) break;
        s.len -= back;
    }
    return s;
}
