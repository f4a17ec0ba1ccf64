// fuzz_descriptor.c: structs of any bytes with any size field, read by the growth rule. An accepted
// struct has exactly the source's bytes followed by zeros, and no nonzero byte is dropped.
#include "fuzz.h"

#include "plugin/load.h"

#include <string.h>

enum { CAP = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    uint32_t size, min;
    uint8_t out[CAP];
    struct rlhf__error err = {0};
    if (n < 8) return 0;
    memcpy(&min, data, sizeof min);
    min %= CAP;
    if (min < sizeof size) min = sizeof size;
    const uint8_t *src = data + 4;
    size_t have = n - 4;
    memcpy(&size, src, sizeof size);
    // A reader cannot detect that a plugin claims more bytes than it has, so such sizes are not
    // tested. Every other size must work.
    if (size > have && size <= 65536) return 0;
    rlhf_status st = rlhf__copy_in(out, CAP, src, min, "struct", &err);
    if (st < 0) {
        FUZZ_CHECK(st == RLHF_E_UNSUPPORTED && strstr(err.text, "struct"));
        int tail = 0;
        for (size_t i = CAP; i < have && i < size; i++)
            tail |= src[i] != 0;
        FUZZ_CHECK(size < min || size > 65536 || tail);
        return 0;
    }
    FUZZ_CHECK(size >= min);
    for (size_t i = 0; i < CAP; i++)
        FUZZ_CHECK(out[i] == (i < size ? src[i] : 0));
    for (size_t i = CAP; i < size; i++)
        FUZZ_CHECK(src[i] == 0);
    return 0;
}
