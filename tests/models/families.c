// tests/models/families.c: see families.h.
#include "families.h"

#include <string.h>

const struct family tiny_families[N_FAMILIES] = {
    {3, 9, 8, 12}, {1, 4, 0, 6}, {2, 2, 1, 9}, {4, 11, 8, 10}, {1, 6, 5, 8}};

// Some prefixes are shorter than the block widths of fast kernels, some are equal to them, and some
// are longer. There are more keys than a block holds.
const struct family wider_families[N_FAMILIES] = {
    {4, 40, 39, 50}, {2, 5, 0, 30}, {3, 17, 16, 20}, {8, 36, 32, 16}, {2, 70, 65, 25}};

const struct setting wider_gpt2[] = {{"vocab_size", "1037"}, {"n_positions", "96"},
                                     {"n_embd", "80"},       {"n_layer", "3"},
                                     {"n_head", "5"},        {NULL, NULL}};

enum { MAX_ROWS = 64, MAX_TOTAL = 4096 };

static int32_t draw(rlhf_rng *g, int32_t n) { return (int32_t)rlhf_rng_below(g, (uint64_t)n); }

// Ends a row of the compact batch. The row consists of the entries first .. end - 1 of `full`.
static void put_compact(struct families *f, int32_t first, int32_t end, int32_t prompt_len,
                        int32_t prefix) {
    rlhf_batch *c = &f->compact;
    for (int32_t t = first; t < end; t++, c->total++) {
        f->c_ids[c->total] = f->ids[t];
        f->at[c->total] = t;
    }
    f->c_prompt_len[c->n] = prompt_len;
    f->c_prefix[c->n] = prefix;
    f->c_offset[++c->n] = (int32_t)c->total;
}

static void put_family(struct families *f, const struct family *k, int32_t vocab, rlhf_rng *g) {
    const int32_t start = f->offset[f->full.n], leader = (int32_t)f->compact.n;
    for (int32_t t = 0; t < k->prompt; t++)
        f->ids[start + t] = draw(g, vocab);
    if (k->shared) put_compact(f, start, start + k->shared, k->shared, -1);
    for (int32_t r = 0; r < k->rows; r++) {
        const int32_t a = f->offset[f->full.n], len = k->prompt + draw(g, k->max_new + 1);
        memmove(f->ids + a, f->ids + start, (uint64_t)k->prompt * sizeof *f->ids);
        for (int32_t t = k->prompt; t < len; t++)
            f->ids[a + t] = draw(g, vocab);
        f->prompt_len[f->full.n] = k->prompt;
        f->offset[++f->full.n] = a + len;
        put_compact(f, a + k->shared, a + len, k->prompt - k->shared, k->shared ? leader : -1);
    }
}

struct families families_make(const struct family *k, uint32_t n, int32_t vocab) {
    struct families f = {{0}, {0}, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
    f.full.size = f.compact.size = sizeof(rlhf_batch);
    rlhf_rng g = {5, rlhf_rng_stream("families"), 0};
    int32_t **rows[] = {&f.prompt_len, &f.c_prompt_len, &f.c_prefix, &f.offset, &f.c_offset};
    int32_t **tokens[] = {&f.ids, &f.c_ids, &f.at};
    for (uint32_t i = 0; i < 5; i++)
        *rows[i] = test_calloc(MAX_ROWS + 1, sizeof **rows);
    for (uint32_t i = 0; i < 3; i++)
        *tokens[i] = test_calloc(MAX_TOTAL, sizeof **tokens);
    for (uint32_t i = 0; i < n; i++)
        put_family(&f, &k[i], vocab, &g);
    f.full.total = (uint32_t)f.offset[f.full.n];
    f.full.ids = f.ids;
    f.full.offset = f.offset;
    f.full.prompt_len = f.prompt_len;
    f.compact.ids = f.c_ids;
    f.compact.offset = f.c_offset;
    f.compact.prompt_len = f.c_prompt_len;
    f.compact.prefix = f.c_prefix;
    assert_true(f.compact.n <= MAX_ROWS && f.full.total <= MAX_TOTAL);
    return f;
}

void families_free(struct families *f) {
    int32_t *all[] = {f->ids,      f->offset,       f->prompt_len, f->c_ids,
                      f->c_offset, f->c_prompt_len, f->c_prefix,   f->at};
    for (uint32_t i = 0; i < sizeof all / sizeof *all; i++)
        test_free(all[i]);
}
