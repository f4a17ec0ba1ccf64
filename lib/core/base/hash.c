// hash.c: see hash.h.
#include "base/hash.h"

#include "base/regular.h"
#include "base/sha256_blocks.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

// ---- SHA-256 ----

void rlhf__sha256_init(struct rlhf__sha256 *s) {
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memset(s, 0, sizeof *s);
    memcpy(s->h, start, sizeof start);
    s->hardware = rlhf__sha256_has_instructions();
}

void rlhf__sha256_put(struct rlhf__sha256 *s, const void *bytes, size_t n) {
    const uint8_t *p = bytes;
    if (n == 0) return; // `bytes` may be NULL then
    s->total += n;
    if (s->used > 0) { // complete the block that has begun
        const size_t room = 64 - s->used, take = n < room ? n : room;
        memcpy(s->block + s->used, p, take);
        s->used += (uint32_t)take;
        p += take;
        n -= take;
        if (s->used < 64) return;
        rlhf__sha256_blocks(s->h, s->block, 1, s->hardware);
        s->used = 0;
    }
    rlhf__sha256_blocks(s->h, p, n / 64, s->hardware);
    s->used = n % 64;
    if (s->used > 0) memcpy(s->block, p + (n - s->used), s->used);
}

void rlhf__sha256_finish(struct rlhf__sha256 *s, uint8_t digest[32]) {
    uint64_t bits = s->total * 8;
    static const uint8_t pad[64] = {0x80};
    rlhf__sha256_put(s, pad, s->used < 56 ? 56 - s->used : 120 - s->used);
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    rlhf__sha256_put(s, length, 8);
    for (int i = 0; i < 32; i++)
        digest[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void rlhf__sha256_hex(struct rlhf__sha256 *s, char hex[65]) {
    static const char digits[] = "0123456789abcdef";
    uint8_t digest[32];
    rlhf__sha256_finish(s, digest);
    for (size_t i = 0; i < 64; i++)
        hex[i] = digits[digest[i / 2] >> (i % 2 ? 0 : 4) & 15];
    hex[64] = '\0';
}

rlhf_status rlhf__sha256_file(const char *path, char hex[65], struct rlhf__error *err) {
    hex[0] = '\0';
    const int fd = rlhf__regular_open(AT_FDCWD, path, 1);
    if (fd < 0) return rlhf__regular_failed(path, err);
    struct rlhf__sha256 s;
    rlhf__sha256_init(&s);
    char chunk[65536];
    ssize_t n;
    while ((n = read(fd, chunk, sizeof chunk)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0) rlhf__sha256_put(&s, chunk, (size_t)n);
    const int why = errno;
    close(fd);
    if (n < 0) return rlhf__fail(err, RLHF_E_IO, "%s: cannot read: %s", path, strerror(why));
    rlhf__sha256_hex(&s, hex);
    return RLHF_OK;
}

// ---- CRC-32C ----

// Processes four bits at a time with a table of 16 entries. That is fast enough for the small event
// and state files.
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
