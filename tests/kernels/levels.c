// levels.c: see levels.h.
#include "levels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static uint64_t next(struct levels *l) {
    l->state ^= l->state << 13;
    l->state ^= l->state >> 7;
    l->state ^= l->state << 17;
    return l->state;
}

static void *array(size_t bytes) {
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(p);
    memset(p, 0, bytes);
    return p;
}

void levels_open(struct levels *l) {
    memset(l, 0, sizeof *l);
    l->state = 88172645463325252u;
    for (int isa = RLHF__ISA_AVX512_BF16; isa >= RLHF__ISA_BASELINE; isa--) {
        const struct rlhf__level *level = rlhf__isa_level(isa);
        if (!level->hot || rlhf__isa_lacks(isa)) continue;
        l->table[l->n] = level->hot;
        l->name[l->n] = level->name;
        l->isa[l->n] = isa;
        l->out[l->n] = array((size_t)LEVELS_LARGEST * 16);
        l->n++;
    }
    float **f[] = {&l->a, &l->b, &l->c, &l->d};
    uint16_t **h[] = {&l->ha, &l->hb, &l->hc, &l->hd};
    for (size_t i = 0; i < 4; i++) {
        *f[i] = array((size_t)LEVELS_LARGEST * sizeof(float));
        *h[i] = array((size_t)LEVELS_LARGEST * sizeof(uint16_t));
    }
    l->scratch = array((size_t)LEVELS_LARGEST * 16 * sizeof(float));
}

void levels_close(struct levels *l) {
    for (size_t i = 0; i < l->n; i++)
        free(l->out[i]);
    free(l->a);
    free(l->b);
    free(l->c);
    free(l->d);
    free(l->ha);
    free(l->hb);
    free(l->hc);
    free(l->hd);
    free(l->scratch);
}

static uint16_t rounded(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

void levels_fill(struct levels *l, size_t n, float scale) {
    float *f[] = {l->a, l->b, l->c, l->d};
    uint16_t *h[] = {l->ha, l->hb, l->hc, l->hd};
    assert_true(n <= LEVELS_LARGEST);
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < n; j++) {
            f[i][j] = (float)((double)(int64_t)next(l) * 0x1p-63) * scale;
            h[i][j] = rounded(f[i][j]);
        }
}

void levels_compare(struct levels *l, const char *name, levels_call *call, const void *args,
                    size_t bytes) {
    assert_true(bytes <= (size_t)LEVELS_LARGEST * 16);
    int known = 0;
    for (size_t i = 0; i < l->n_called; i++)
        known |= strcmp(l->called[i], name) == 0;
    if (!known) l->called[l->n_called++] = name;
    for (size_t i = 0; i < l->n; i++) {
        memset(l->out[i], 0, bytes + 64);
        call(l, l->table[i], l->out[i], args);
        if (i == 0 || memcmp(l->out[0], l->out[i], bytes) == 0) continue;
        size_t at = 0;
        while (l->out[0][at] == l->out[i][at])
            at++;
        fail_msg("%s: %s and %s differ at byte %zu of %zu", name, l->name[0], l->name[i], at,
                 bytes);
    }
    l->comparisons += l->n - 1;
}

void levels_all_called(const struct levels *l, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++) {
        int called = 0;
        for (size_t j = 0; j < l->n_called; j++)
            called |= strcmp(l->called[j], names[i]) == 0;
        if (!called) fail_msg("the hot function %s is compared at no level: add a case", names[i]);
    }
    print_message("%zu levels, %zu comparisons\n", l->n, l->comparisons);
}
