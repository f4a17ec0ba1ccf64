// levels.c: see levels.h.
#include "levels.h"

#include "support/check.h"

#include <stdio.h>
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
    for (int isa = RLHF__ISA_COUNT - 1; isa >= 0; isa--) {
        const struct rlhf__level *level = rlhf__isa_level(isa);
        const int known = l->n && level->hot == l->table[l->n - 1]; // amx: loops of the next level
        if (!level->hot || rlhf__isa_lacks(isa) || known) continue;
        l->table[l->n] = level->hot;
        l->name[l->n] = level->name;
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
    size_t f = 0;
    while (f < l->n_called && strcmp(l->called[f], name) != 0)
        f++;
    if (f == l->n_called) {
        l->called[l->n_called++] = name;
        l->hash[f] = 0xcbf29ce484222325u;
    }
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
    for (size_t i = 0; i < bytes; i++)
        l->hash[f] = (l->hash[f] ^ (unsigned char)l->out[0][i]) * 0x100000001b3u;
    l->comparisons += l->n - 1;
}

// Returns the function's hash in levels.txt, or 0 if the file lacks it.
static uint64_t expected(const char *name) {
    char path[4096], line[128];
    const char *source = getenv("RLHF_SOURCE_DIR");
    assert_non_null(source);
    snprintf(path, sizeof path, "%s/tests/kernels/levels.txt", source);
    FILE *f = fopen(path, "r");
    uint64_t hash = 0;
    const size_t n = strlen(name);
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, name, n) == 0 && line[n] == ' ') hash = strtoull(line + n, NULL, 16);
    if (f) fclose(f);
    return hash;
}

void levels_all_called(const struct levels *l, const char *const *names, size_t n) {
    int other = 0;
    for (size_t i = 0; i < n; i++) {
        size_t f = 0;
        while (f < l->n_called && strcmp(l->called[f], names[i]) != 0)
            f++;
        if (f == l->n_called)
            fail_msg("the hot function %s is compared at no level: add a case", names[i]);
        if (!l->hash[f]) continue; // the function only moves values
        if (getenv("RLHF_TEST_UPDATE")) {
            printf("%s %016llx\n", names[i], (unsigned long long)l->hash[f]);
        } else if (l->hash[f] != expected(names[i])) {
            print_error("%s: the outputs have the hash %016llx, in levels.txt it is %016llx\n",
                        names[i], (unsigned long long)l->hash[f],
                        (unsigned long long)expected(names[i]));
            other++;
        }
    }
    if (other) fail_msg("%d functions have other bits than on the machine of levels.txt", other);
    print_message("%zu levels, %zu comparisons\n", l->n, l->comparisons);
}
