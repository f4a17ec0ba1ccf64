// crc32c.c: see crc32c.h. Bit by bit over a 16-entry table: events and state files are small.
#include "base/crc32c.h"

#define POLY      0x82f63b78u
#define STEP(c)   ((c)&1u ? ((c) >> 1) ^ POLY : (c) >> 1)
#define NIBBLE(n) STEP(STEP(STEP(STEP((uint32_t)(n)))))

uint32_t rlhf__crc32c(uint32_t crc, const void *bytes, size_t n) {
    static const uint32_t table[16] = {NIBBLE(0),  NIBBLE(1),  NIBBLE(2),  NIBBLE(3),
                                       NIBBLE(4),  NIBBLE(5),  NIBBLE(6),  NIBBLE(7),
                                       NIBBLE(8),  NIBBLE(9),  NIBBLE(10), NIBBLE(11),
                                       NIBBLE(12), NIBBLE(13), NIBBLE(14), NIBBLE(15)};
    const uint8_t *p = bytes;
    crc = ~crc;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

uint32_t rlhf__crc32c_mask(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }
