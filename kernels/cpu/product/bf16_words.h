// bf16_words.h: the words of a bf16 panel (bf16.h) from the elements of a quantised panel. Hot
// sources include this file.
#ifndef RLHF_CPU_PRODUCT_BF16_WORDS_H
#define RLHF_CPU_PRODUCT_BF16_WORDS_H

#include "machine/vec.h"

#include "unquantise.h"

// Words of two steps: low halves of `even`, high halves of `odd`.
UNQUANTISE_INLINE __m512i bf16_words(vp even, vp odd) {
    static const uint16_t order[32] __attribute__((aligned(64))) = {
        0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    return _mm512_permutexvar_epi16(_mm512_load_si512(order),
                                    (__m512i)_mm512_cvtne2ps_pbh(odd, even));
}

#endif
