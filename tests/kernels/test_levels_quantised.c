// test_levels_quantised.c: unpacking quantised panels, and GEMMs of few rows with them, give the
// same bits at every instruction-set level. The layout of a panel depends on the level's width, so
// each level packs the same blocks itself, and the outputs are compared in the order [k][COLUMNS].
#include "levels.h"
#include "product/quantised_put.h"

#include "support/check.h"

#include <rlhf/compute.h>

#include <string.h>

// All blocks of a column have 512 elements. The last panel of 32 columns has 8 unused ones.
enum { COLUMNS = 56, K = 512, WIDEST = 64, MOST_BYTES = 40 };

struct args {
    int format, form;
    size_t k0, k, rows, chain;
    const uint8_t *blocks; // [COLUMNS][the blocks of K elements]
};

static size_t column_bytes(int format) { return (size_t)rlhf_format_row_bytes(format, K); }

// Random blocks with ordinary f16 scales, or denormal ones in some blocks.
static void fill(const struct levels *l, uint8_t *to, int format) {
    const size_t size = (size_t)rlhf_format_bytes(format), all = COLUMNS * column_bytes(format);
    const size_t first = format == RLHF_FORMAT_Q6_K ? 208 : 0;
    const size_t halves =
        format == RLHF_FORMAT_Q4_1 || format == RLHF_FORMAT_Q5_1 || format == RLHF_FORMAT_Q4_K ? 2
                                                                                               : 1;
    for (size_t i = 0; i < all; i++)
        to[i] = (uint8_t)(int)(l->d[i] * 1e4f);
    for (size_t b = 0; b < all / size; b++)
        for (size_t h = 0; h < halves; h++) {
            uint8_t *high = to + b * size + first + 2 * h + 1; // an exponent from 2^-11 to 2^-8
            *high = (uint8_t)(b % 11 == 3 ? *high & 0x83 : (*high & 0x8f) | 0x10);
        }
}

// Stores the panel that begins at column c, and returns it.
static const uint8_t *panel_of(const struct levels *l, const struct rlhf__hot *t,
                               const struct args *g, size_t c) {
    const size_t size = (size_t)rlhf_format_bytes(g->format), bytes = column_bytes(g->format);
    uint8_t *to = (uint8_t *)(void *)l->scratch;
    memset(to, 0, t->gemm_columns * bytes);
    for (size_t j = 0; j < t->gemm_columns && c + j < COLUMNS; j++)
        for (size_t u = 0; u < bytes / size; u++)
            rlhf__quantised_put(to + u * t->gemm_columns * size, t->gemm_columns, j, g->format,
                                g->blocks + (c + j) * bytes + u * size, 0);
    return to;
}

static void call_unquantise(const struct levels *l, const struct rlhf__hot *t, char *out,
                            const void *args) {
    static float part[K * WIDEST] __attribute__((aligned(64)));
    const struct args *g = args;
    const size_t width = t->gemm_columns;
    assert_true(width <= WIDEST);
    for (size_t c = 0; c < COLUMNS; c += width) {
        t->unquantise(part, panel_of(l, t, g, c), g->format, g->k0, g->k, g->form);
        for (size_t i = 0; i < g->k; i++)
            for (size_t j = 0; j < width && c + j < COLUMNS; j++)
                ((float *)(void *)out)[i * COLUMNS + c + j] = part[i * width + j];
    }
}

static void call_few(const struct levels *l, const struct rlhf__hot *t, char *out,
                     const void *args) {
    const struct args *g = args;
    const size_t width = t->gemm_columns;
    for (size_t c = 0; c < COLUMNS; c += width) {
        const struct rlhf__panel p = {.a = l->a,
                                      .a_stride = K,
                                      .m = g->rows,
                                      .k = g->k,
                                      .c = (float *)(void *)out + c,
                                      .ldc = COLUMNS,
                                      .columns = COLUMNS - c < width ? COLUMNS - c : width,
                                      .bias = l->b + c,
                                      .chain = g->chain,
                                      .pairs = g->form == RLHF__UNQUANTISE_PAIRS};
        t->gemm_few(&p, panel_of(l, t, g, c), g->format, g->k0);
    }
}

static void of_format(struct levels *l, int format) {
    static const size_t chains[] = {0, 64};
    static const size_t parts[][2] = {{0, K}, {0, 256}, {256, 256}}; // k0, k
    static uint8_t blocks[COLUMNS * K * MOST_BYTES / 32];
    struct args g = {.format = format, .blocks = blocks};
    assert_true(COLUMNS * column_bytes(format) <= sizeof blocks);
    fill(l, blocks, format);
    for (size_t i = 0; i < CHECK_COUNT(parts); i++) {
        g.k0 = parts[i][0];
        g.k = parts[i][1];
        for (g.form = RLHF__UNQUANTISE_F32; g.form <= RLHF__UNQUANTISE_PAIRS; g.form++)
            levels_compare(l, "unquantise", call_unquantise, &g, g.k * COLUMNS * sizeof(float));
        for (g.rows = 1; g.rows <= RLHF__GEMM_FEW; g.rows++)
            for (size_t c = 0; c < CHECK_COUNT(chains) + 1; c++) {
                const int pairs = c == CHECK_COUNT(chains);
                g.chain = pairs ? 0 : chains[c];
                g.form = pairs ? RLHF__UNQUANTISE_PAIRS : RLHF__UNQUANTISE_F32;
                levels_compare(l, "gemm_few", call_few, &g, g.rows * COLUMNS * sizeof(float));
            }
    }
    // Eight steps inside of a run.
    g.form = RLHF__UNQUANTISE_F32;
    g.k0 = 40;
    g.k = 8;
    levels_compare(l, "unquantise", call_unquantise, &g, g.k * COLUMNS * sizeof(float));
}

static void formats(void **state) {
    static const char *const names[] = {"unquantise", "gemm_few"};
    static struct levels l;
    (void)state;
    levels_open(&l);
    levels_fill(&l, K * 64, 1.0f);
    for (int format = RLHF_FORMAT_Q8_0; format <= RLHF_FORMAT_Q5_1; format++)
        of_format(&l, format);
    levels_all_called(&l, names, CHECK_COUNT(names));
    levels_close(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(formats)};
    return cmocka_run_group_tests_name("kernels: quantised panels at all levels", tests, NULL,
                                       NULL);
}
