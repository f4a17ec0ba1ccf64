// http_handshake.c: see http_handshake.h. SHA-1 follows FIPS 180-4; here it only shows that the
// server has read the key, so that its weakness does not matter.
#include "http_handshake.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { KEY_BYTES = 16, DIGEST = 20 };

int rlhf__handshake_random(void *bytes, size_t n) { return getrandom(bytes, n, 0) == (ssize_t)n; }

// ---- base64 ----

static void base64(const uint8_t *from, size_t n, char *to) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        const uint32_t three = (uint32_t)from[i] << 16 |
                               (i + 1 < n ? (uint32_t)from[i + 1] << 8 : 0) |
                               (i + 2 < n ? from[i + 2] : 0);
        *to++ = digits[three >> 18];
        *to++ = digits[three >> 12 & 63];
        *to++ = digits[three >> 6 & 63];
        *to++ = digits[three & 63];
    }
    for (size_t k = 0; k < (3 - n % 3) % 3; k++)
        to[-1 - (ptrdiff_t)k] = '=';
    *to = 0;
}

// ---- SHA-1 ----

static uint32_t turned(uint32_t x, int n) { return x << n | x >> (32 - n); }

static void take_block(uint32_t h[5], const uint8_t block[64]) {
    static const uint32_t constants[] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
    uint32_t w[80], v[5];
    for (int i = 0; i < 80; i++)
        w[i] = i < 16 ? (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                            (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3]
                      : turned(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    memcpy(v, h, sizeof v);
    for (int i = 0; i < 80; i++) {
        const uint32_t mixed = i < 20              ? (v[1] & v[2]) | (~v[1] & v[3])
                               : i >= 40 && i < 60 ? (v[1] & v[2]) | (v[1] & v[3]) | (v[2] & v[3])
                                                   : v[1] ^ v[2] ^ v[3];
        const uint32_t next = turned(v[0], 5) + mixed + v[4] + constants[i / 20] + w[i];
        v[4] = v[3];
        v[3] = v[2];
        v[2] = turned(v[1], 30);
        v[1] = v[0];
        v[0] = next;
    }
    for (int i = 0; i < 5; i++)
        h[i] += v[i];
}

// The digest of a text of 56 to 119 bytes, which fills two blocks.
static void digest(const char *text, size_t n, uint8_t out[DIGEST]) {
    uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    uint8_t blocks[128] = {0};
    memcpy(blocks, text, n);
    blocks[n] = 0x80;
    blocks[126] = (uint8_t)(n * 8 >> 8);
    blocks[127] = (uint8_t)(n * 8);
    take_block(h, blocks);
    take_block(h, blocks + 64);
    for (int i = 0; i < DIGEST; i++)
        out[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}

// ---- the handshake ----

int rlhf__handshake_key(char key[RLHF__HANDSHAKE_TEXT]) {
    uint8_t bytes[KEY_BYTES];
    if (!rlhf__handshake_random(bytes, sizeof bytes)) return 0;
    base64(bytes, sizeof bytes, key);
    return 1;
}

void rlhf__handshake_answer(const char *key, char answer[RLHF__HANDSHAKE_TEXT]) {
    char text[96]; // 24 bytes of the key and 36 that the RFC gives
    uint8_t bytes[DIGEST];
    const int n =
        snprintf(text, sizeof text, "%.24s%s", key, "258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    digest(text, (size_t)n, bytes);
    base64(bytes, sizeof bytes, answer);
}
