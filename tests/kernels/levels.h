// levels.h: calls each hot function at every instruction-set level that this CPU has, and compares
// the outputs bit for bit. It also compares a hash of all outputs of a function with the hash in
// levels.txt, so other machines and compilers must give the same bits, too. Used by
// test_levels_rows.c, test_levels_products.c, test_levels_quantised.c and test_levels_state.c.
#ifndef RLHF_TESTS_KERNELS_LEVELS_H
#define RLHF_TESTS_KERNELS_LEVELS_H

#include "machine/hot.h"

#include <stddef.h>
#include <stdint.h>

enum {
    LEVELS_LARGEST = 1 << 20, // elements of an input array
    LEVELS_MOST = 8           // levels of an architecture
};

// Inputs and outputs of one test program. All arrays are 64-byte aligned.
struct levels {
    const struct rlhf__hot *table[LEVELS_MOST];
    const char *name[LEVELS_MOST];
    size_t n;                       // levels to compare
    char *out[LEVELS_MOST];         // what a call wrote, one array per level
    float *a, *b, *c, *d, *scratch; // inputs in f32, set by levels_fill
    uint16_t *ha, *hb, *hc, *hd;    // the same inputs rounded to bf16
    uint64_t state;
    const char *called[128]; // names of the functions that were compared
    uint64_t hash[128];      // FNV-1a of all outputs of each function
    size_t n_called, comparisons;
};

// A call of one function at one level. It writes its results to `out`, which is zeroed.
typedef void levels_call(const struct levels *l, const struct rlhf__hot *t, char *out,
                         const void *args);

void levels_open(struct levels *l);
void levels_close(struct levels *l);

// Sets the first n elements of all inputs to random numbers from -scale to scale.
void levels_fill(struct levels *l, size_t n, float scale);

// Makes the call at every level. Fails the test if the first `bytes` of the outputs differ. `name`
// is the function's name in struct rlhf__hot.
void levels_compare(struct levels *l, const char *name, levels_call *call, const void *args,
                    size_t bytes);

// Fails the test if a function of the list `names` was not compared, or if its hash differs from
// levels.txt in the source directory. If RLHF_TEST_UPDATE is set, prints the lines of that file.
void levels_all_called(const struct levels *l, const char *const *names, size_t n);

// Returns the input a, b, c or d as bf16 or f32.
static inline const void *levels_in(const struct levels *l, char which, int bf16) {
    const float *f[] = {l->a, l->b, l->c, l->d};
    const uint16_t *h[] = {l->ha, l->hb, l->hc, l->hd};
    return bf16 ? (const void *)h[which - 'a'] : (const void *)f[which - 'a'];
}

#endif
