// test_levels_products.c: the GEMM tiles, the LM head's loops and the optimizers of the CPU backend
// give the same bits at every instruction-set level. A bf16 GEMM on pairs of values widened to f32
// gives the same bits as the bf16 tiles. If a function lacks a case, the test fails.
#ifdef __x86_64__
#include "product/bf16.h"
#endif
#include "levels.h"

#include "support/check.h"

#include <string.h>

struct args {
    size_t n;
    int bf16, capped, mode; // mode: a case of the function
    struct rlhf__head_stat stat;
    double u;
};

#define CALL(name)                                                                                 \
    static void call_##name(const struct levels *l, const struct rlhf__hot *t, char *out,          \
                            const void *args) {                                                    \
        const struct args *g = args;                                                               \
        const size_t n = g->n;                                                                     \
        float *f = (float *)(void *)out;                                                           \
        (void)l, (void)n, (void)f;
#define END }

static const float it = 0.9f;
static const struct rlhf__head_grad grads[] = {{0.3f, 0.1f, 0.2f, 0, {1.0f, 0.0f}},
                                               {0.3f, 0.1f, 0.2f, 0, {0.5f, 30.0f}}};

CALL(column_sums)
t->column_sums(f, levels_in(l, 'a', g->bf16), g->bf16, 3, n, n);
END CALL(weighted_sums) t->weighted_sums(f, l->a, l->c, 3, n, n);
END CALL(head_map) memcpy(out, l->a, n * 4);
t->head_map(f, n, (struct rlhf__head_map){0.5f, g->mode ? 30.0f : 0.0f});
END CALL(head_stat) t->head_stat((void *)out, l->a, n, it, 1, (double *)(void *)(out + 64));
END CALL(head_kl) memcpy(out, &g->stat, sizeof g->stat);
t->head_kl((void *)out, l->a, l->b, n, it);
END CALL(head_divergence) memcpy(out, &g->stat, sizeof g->stat);
t->head_divergence((void *)out, l->a, l->b, n, it, g->mode ? 0.3f : 0.0f);
END CALL(head_divergence_grad) t->head_divergence_grad(out, g->bf16, l->a, l->b, n, it,
                                                       g->mode ? 0.3f : 0.0f, &g->stat,
                                                       &grads[g->capped]);
END CALL(head_grad) t->head_grad(out, g->bf16, l->a, l->b, n, it, &g->stat, &grads[g->capped]);
END CALL(head_sums) t->head_sums((double *)(void *)out, l->a, n, it, g->stat.max);
END CALL(head_draw)
double sums[64];
t->head_sums(sums, l->a, n, it, g->stat.max);
t->head_draw((int32_t *)(void *)out, l->a, n, it, g->stat.max, g->u, sums);
END CALL(head_argmax) t->head_argmax((int32_t *)(void *)out, l->a, n);
END CALL(head_truncate) memcpy(out, l->a, n * 4);
t->head_truncate(f, n, it, n > 50 ? 50 : 0, 0.9, l->scratch);
END CALL(adamw) const
    struct rlhf__adam_step s = {0.5f, 0.9f, 0.1f, 0.999f, 0.001f, 0.9999f, 1e-4f, 1.1f, 1e-8f, 0};
memcpy(out, l->a, n * 4);
memcpy(f + n, l->b, n * 4);
memcpy(f + 2 * n, l->c, n * 4);
for (size_t i = 0; i < n; i++)
    f[3 * n + i] = l->d[i] * l->d[i];
t->adamw(f, f + n, f + 2 * n, f + 3 * n, n, &s);
END CALL(sumsq) t->sumsq((double *)(void *)out, l->a, n);
END CALL(muon_momentum) memcpy(f + n, l->a, n * 4);
t->muon_momentum(f, f + n, l->b, n, 0.95f, 0.7f, g->mode);
END CALL(scale) memcpy(out, l->a, n * 4);
t->scale(f, n, 0.3f);
END CALL(blend) t->blend(f, l->a, l->b, n, 0.3f, 0.6f);
END CALL(apply_step) memcpy(out, l->a, n * 4);
t->apply_step(f, l->b, n, 0.99f, 0.01f);
END

#define COMPARE(name, bytes) levels_compare(l, #name, call_##name, &g, bytes)

    static void
    of_heads(struct levels *l, size_t n) {
    struct args g = {.n = n};
    const size_t stat = sizeof g.stat, blocks = rlhf__head_blocks(n) * sizeof(double);
    for (g.mode = 0; g.mode < 2; g.mode++)
        COMPARE(head_map, n * 4);
    COMPARE(head_stat, 64 + blocks);
    l->table[0]->head_stat(&g.stat, l->a, n, it, 1, NULL);
    COMPARE(head_kl, stat);
    l->table[0]->head_kl(&g.stat, l->a, l->b, n, it);
    COMPARE(head_sums, blocks);
    COMPARE(head_argmax, 4);
    COMPARE(head_truncate, n * 4);
    for (g.u = 0.01; g.u < 1.0; g.u += 0.09)
        COMPARE(head_draw, 4);
    for (g.bf16 = 0; g.bf16 < 2; g.bf16++)
        for (g.capped = 0; g.capped < 2; g.capped++)
            COMPARE(head_grad, n * (g.bf16 ? 2 : 4));
    const struct rlhf__head_stat reverse = g.stat;
    for (g.mode = 0; g.mode < 2; g.mode++) {
        g.stat = reverse;
        COMPARE(head_divergence, stat);
        l->table[0]->head_divergence(&g.stat, l->a, l->b, n, it, g.mode ? 0.3f : 0.0f);
        for (g.bf16 = 0; g.bf16 < 2; g.bf16++)
            for (g.capped = 0; g.capped < 2; g.capped++)
                COMPARE(head_divergence_grad, n * (g.bf16 ? 2 : 4));
    }
}

static void of_lengths(void **state) {
    static const size_t lengths[] = {1, 7, 15, 16, 17, 33, 64, 100, 255, 768, 1025, 3000, 20001};
    static const float scales[] = {1e-38f, 3.0f, 40.0f};
    struct levels *l = *state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
            const size_t n = lengths[i];
            struct args g = {.n = n};
            levels_fill(l, n * 3 + 64, scales[s]);
            for (g.bf16 = 0; g.bf16 < 2; g.bf16++)
                COMPARE(column_sums, n * 4);
            for (g.mode = 0; g.mode < 2; g.mode++)
                COMPARE(muon_momentum, n * 8);
            COMPARE(weighted_sums, n * 4);
            COMPARE(adamw, n * 16);
            COMPARE(sumsq, 8);
            COMPARE(scale, n * 4);
            COMPARE(blend, n * 4);
            COMPARE(apply_step, n * 4);
            of_heads(l, n);
        }
}

// ---- GEMMs ----

enum { ROWS = 27, COLUMNS = 45 };

// Where A comes from: from its rows, packed from its rows, or packed from the rows of its
// transpose.
enum left { LEFT_ROWS, LEFT_TURNED, LEFT_PACKED, LEFT_KINDS };

struct gemm_args {
    size_t k, chain;
    int pairs, goes_on, across;
    enum left left;
};

// Packs columns of B [k, COLUMNS] from column c on, or of B stored as its transpose.
static void pack(const struct levels *l, const struct rlhf__hot *t, const struct gemm_args *g,
                 uint32_t *to, size_t c, size_t columns) {
    if (g->across)
        t->gemm_pack_cols(to, l->b + c * g->k, g->k, columns, g->k, 0);
    else
        t->gemm_pack_rows(to, l->b + c, g->k, columns, COLUMNS, 0);
}

// Sets the left operand of the panel.
static void put_left(const struct levels *l, const struct rlhf__hot *t, const struct gemm_args *g,
                     struct rlhf__panel *p) {
    uint32_t *packed = (uint32_t *)(void *)(l->scratch + LEVELS_LARGEST);
    p->a = g->left == LEFT_ROWS ? (const void *)l->a : packed;
    p->a_packed = g->left != LEFT_ROWS;
    if (g->left == LEFT_TURNED) t->gemm_turn_a(packed, l->a, ROWS, g->k, g->k);
    if (g->left == LEFT_PACKED) t->gemm_pack_a(packed, l->a, ROWS, g->k, ROWS);
}

static void call_gemm(const struct levels *l, const struct rlhf__hot *t, char *out,
                      const void *args) {
    const struct gemm_args *g = args;
    const size_t width = t->gemm_columns;
    uint32_t *packed = (uint32_t *)(void *)l->scratch;
    memcpy(out, l->c, (size_t)ROWS * COLUMNS * sizeof(float));
    for (size_t c = 0; c < COLUMNS; c += width) {
        const size_t columns = COLUMNS - c < width ? COLUMNS - c : width;
        struct rlhf__panel p = {.a_stride = g->k,
                                .m = ROWS,
                                .k = g->k,
                                .b = packed,
                                .c = (float *)(void *)out + c,
                                .ldc = COLUMNS,
                                .columns = columns,
                                .chain = g->chain,
                                .pairs = g->pairs,
                                .goes_on = g->goes_on};
        put_left(l, t, g, &p);
        pack(l, t, g, packed, c, columns);
        t->gemm_panel(&p);
    }
}

// GEMMs of one length of k and one chain.
static void gemms_of(struct levels *l, size_t k, size_t chain) {
    static const char *const left[] = {"gemm_panel", "gemm_turn_a", "gemm_pack_a"};
    struct gemm_args g = {.k = k, .chain = chain};
    const size_t bytes = (size_t)ROWS * COLUMNS * sizeof(float);
    for (g.across = 0; g.across < 2; g.across++)
        for (g.goes_on = 0; g.goes_on < 2; g.goes_on++)
            for (g.pairs = 0; g.pairs < (chain ? 1 : 2); g.pairs++)
                for (g.left = LEFT_ROWS; g.left < LEFT_KINDS; g.left++) {
                    const char *right = g.across ? "gemm_pack_cols" : "gemm_pack_rows";
                    levels_compare(l, right, call_gemm, &g, bytes);
                    levels_compare(l, left[g.left], call_gemm, &g, bytes);
                }
}

static void gemms(void **state) {
    static const size_t steps[] = {2, 8, 64, 66, 130, 512, 700, 1024, 1100, 2100};
    static const size_t chains[] = {0, 64, 256};
    struct levels *l = *state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        levels_fill(l, steps[i] * 64 + 1024, 1.0f);
        for (size_t c = 0; c < sizeof chains / sizeof *chains; c++)
            gemms_of(l, steps[i], chains[c]);
    }
}

// If this CPU has bf16 tiles, they compute the same GEMM for comparison. Otherwise only the hash is
// compared.
#ifdef __x86_64__
static int has_bf16_tiles(void) { return !rlhf__isa_lacks(RLHF__ISA_AVX512_BF16); }

static void bf16_tiles(const struct levels *l, size_t k, float *out) {
    uint32_t *packed = (uint32_t *)(void *)l->scratch;
    for (size_t c = 0; c < COLUMNS; c += RLHF__BF16_NC) {
        const size_t columns = COLUMNS - c < RLHF__BF16_NC ? COLUMNS - c : RLHF__BF16_NC;
        const struct rlhf__panel p = {.a = l->ha,
                                      .a_stride = k,
                                      .m = ROWS,
                                      .k = k,
                                      .b = packed,
                                      .c = out + c,
                                      .ldc = COLUMNS,
                                      .columns = columns};
        rlhf__bf16_pack_rows(packed, l->hb + c, k, columns, COLUMNS);
        rlhf__bf16_panel(&p);
    }
}
#else
static int has_bf16_tiles(void) { return 0; }

static void bf16_tiles(const struct levels *l, size_t k, float *out) {
    (void)l, (void)k, (void)out;
}
#endif

// Widens ha and hb to a and b in the layout of pairs. Returns the number of steps of k.
static size_t widen(const struct levels *l, size_t k) {
    const size_t even = (k + 1) / 2 * 2;
    for (size_t r = 0; r < ROWS; r++)
        l->table[0]->to_f32_pairs(l->a + r * even, l->ha + r * k, k);
    memset(l->b, 0, even * COLUMNS * sizeof(float));
    for (size_t i = 0; i < k; i++)
        l->table[0]->to_f32(l->b + (i ^ 1) * COLUMNS, l->hb + i * COLUMNS, COLUMNS);
    return even;
}

// Scales near 1e-19 give denormal products and partial sums.
static void pairs_are_bf16(void **state) {
    static const size_t steps[] = {1, 2, 7, 64, 513, 700, 2100};
    static const float scales[] = {1.0f, 1e-19f, 1e-38f, 1e18f};
    static float expected[ROWS * COLUMNS];
    struct levels *l = *state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
            levels_fill(l, steps[i] * 64 + 1024, scales[s]);
            if (has_bf16_tiles()) bf16_tiles(l, steps[i], expected);
            const struct gemm_args g = {.k = widen(l, steps[i]), .pairs = 1};
            levels_compare(l, "gemm_panel", call_gemm, &g, sizeof expected);
            if (has_bf16_tiles()) assert_memory_equal(l->out[0], expected, sizeof expected);
        }
}

// gemm_turn_b only moves values, and its layout differs between levels, so it is not compared.
// test_levels_quantised.c compares the other two.
static void all_functions(void **state) {
    struct levels *l = *state;
    l->called[l->n_called++] = "gemm_turn_b";
    l->called[l->n_called++] = "unquantise";
    l->called[l->n_called++] = "gemm_few";
#define NAME(name, args) #name,
    static const char *const names[] = {RLHF__HOT_PRODUCTS(NAME)};
    levels_all_called(l, names, sizeof names / sizeof *names);
}

static int setup(void **state) {
    static struct levels l;
    levels_open(&l);
    *state = &l;
    return 0;
}

static int teardown(void **state) {
    levels_close(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_lengths),
        cmocka_unit_test(gemms),
        cmocka_unit_test(pairs_are_bf16),
        cmocka_unit_test(all_functions),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
