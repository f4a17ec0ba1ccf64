// test_contents.c: errors that kernels find in the contents of device arrays. The next sync reports
// such an error; in guard mode, the call itself reports it. A bad index never leads to a memory
// access (the fake runtime would fault). Rows with good indices are right, and the next call works.
#include "kernels/kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { D = 20, ROWS = 6, TABLE = 9 };

struct contents {
    rlhf_compute *late, *at_once; // without and with guard
    const rlhf_plugin *kernels;
    void *so;
};

static int setup(void **state) {
    const char *name = getenv("RLHF_TEST_BACKEND");
    struct contents *s = calloc(1, sizeof *s);
    s->kernels = kit_load(name ? name : "cuda_emu", &s->so);
    s->late = kit_create(s->kernels, 1, 0, 0);
    s->at_once = kit_create(s->kernels, 1, 1, 0);
    *state = s;
    return 0;
}

static int teardown(void **state) {
    struct contents *s = *state;
    kit_destroy(s->late);
    kit_destroy(s->at_once);
    free(s);
    return 0;
}

// Buffers of exactly the size that an op needs.
struct args {
    rlhf_dev idx, pos, offset, table, other, rows, out, first;
};

typedef rlhf_status op_call(rlhf_compute *c, const struct args *a);

static rlhf_status embed(rlhf_compute *c, const struct args *a) {
    return c->embed(c->ctx, a->rows, a->idx, a->pos, a->table, a->other, 1.0, ROWS, D);
}
static rlhf_status embed_bwd(rlhf_compute *c, const struct args *a) {
    return c->embed_bwd(c->ctx, a->table, a->other, a->rows, a->idx, a->pos, 1.0, ROWS, D, TABLE,
                        TABLE);
}
static rlhf_status embed_ids(rlhf_compute *c, const struct args *a) {
    return c->embed(c->ctx, a->rows, a->idx, NULL, a->table, NULL, 1.0, ROWS, D);
}
static rlhf_status embed_ids_bwd(rlhf_compute *c, const struct args *a) {
    return c->embed_bwd(c->ctx, a->table, NULL, a->rows, a->idx, NULL, 1.0, ROWS, D, TABLE, 0);
}
// One head of queries and one head of keys. If `gamma` is given, the heads have norms.
static rlhf_status turn(rlhf_compute *c, const struct args *a, rlhf_dev gamma, int back) {
    const rlhf_rope g = {.size = sizeof g,
                         .heads = 1,
                         .head_dim = D / 2,
                         .dtype = RLHF_F32,
                         .n_pos = 2 * TABLE, // the size of the table
                         .stride = D,
                         .eps = 1e-6,
                         .pos = a->pos,
                         .turn = a->table,
                         .gamma_q = gamma,
                         .gamma_k = gamma,
                         .raw = gamma ? a->out : NULL,
                         .stats = gamma ? a->first : NULL};
    if (back) return c->rope_bwd(c->ctx, &g, a->rows, gamma, gamma, ROWS);
    return c->rope(c->ctx, &g, a->rows, ROWS);
}
static rlhf_status rope(rlhf_compute *c, const struct args *a) { return turn(c, a, NULL, 0); }
static rlhf_status rope_bwd(rlhf_compute *c, const struct args *a) { return turn(c, a, NULL, 1); }
static rlhf_status rope_norm(rlhf_compute *c, const struct args *a) {
    return turn(c, a, a->other, 0);
}
static rlhf_status rope_norm_bwd(rlhf_compute *c, const struct args *a) {
    return turn(c, a, a->other, 1);
}
static rlhf_status gather(rlhf_compute *c, const struct args *a) {
    return c->gather(c->ctx, a->rows, a->table, a->idx, ROWS, D, RLHF_F32);
}
static rlhf_status scatter_add(rlhf_compute *c, const struct args *a) {
    return c->scatter_add(c->ctx, a->table, a->rows, RLHF_F32, a->idx, ROWS, D);
}
static rlhf_status pool(rlhf_compute *c, const struct args *a) {
    return c->pool(c->ctx, a->rows, a->table, a->offset, ROWS, D, RLHF_POOL_MEAN);
}
static rlhf_status pool_bwd(rlhf_compute *c, const struct args *a) {
    return c->pool_bwd(c->ctx, a->table, a->rows, a->offset, ROWS, D, RLHF_POOL_LAST);
}
static rlhf_status kv_store(rlhf_compute *c, const struct args *a) {
    const rlhf_ragged r = {.size = sizeof r,
                           .n = ROWS,
                           .total = ROWS,
                           .max_q = 1,
                           .max_k = TABLE,
                           .offset = a->offset,
                           .start = a->pos,
                           .kv_base = a->idx};
    return c->kv_store(c->ctx, a->table, a->other, a->rows, a->rows, D, &r, D, RLHF_F32);
}

// One query per row, at position `pos`. Its keys are in the cache and start at token `idx`.
static rlhf_status attend(rlhf_compute *c, const struct args *a, int32_t dtype,
                          const rlhf_ragged *keys) {
    rlhf_ragged r = *keys;
    r.size = sizeof r;
    r.n = r.total = ROWS;
    r.max_q = 1;
    r.max_k = TABLE;
    r.offset = a->first;
    r.start = a->pos;
    const rlhf_attn attn = {.size = sizeof attn,
                            .heads = 1,
                            .head_dim = D,
                            .causal = 1,
                            .dtype = dtype,
                            .q_stride = D,
                            .kv_stride = D,
                            .out_stride = D,
                            .scale = 0.25};
    return c->attention(c->ctx, &attn, &r, a->out, NULL, a->rows, a->table, a->other);
}
static rlhf_status attention(rlhf_compute *c, const struct args *a) {
    return attend(c, a, RLHF_F32, &(rlhf_ragged){.kv_base = a->idx});
}
static rlhf_status attention_bf16(rlhf_compute *c, const struct args *a) {
    return attend(c, a, RLHF_BF16, &(rlhf_ragged){.kv_base = a->idx});
}
// Each query has one separate key, token `offset`. The shared prefix starts at token `idx`.
static rlhf_status attention_prefix(rlhf_compute *c, const struct args *a) {
    return attend(
        c, a, RLHF_F32,
        &(rlhf_ragged){.kv_base = a->offset, .prefix_base = a->idx, .prefix_len = a->pos});
}

static int of_cache(op_call *call) {
    return call == kv_store || call == attention || call == attention_bf16 ||
           call == attention_prefix;
}

struct bad {
    const char *what;
    op_call *call;
    // `idx` and `pos` belong to row 4. `offset` is the start of row 4, with two exceptions: a
    // negative `offset` is the start of the first row, and an `offset` above ROWS is the end of the
    // last row.
    int32_t idx, pos, offset;
    const char *text; // part of the error text; NULL: valid
};

static const struct bad bads[] = {
    {"embed", embed, 4, 4, 4, NULL},
    {"an id past the table", embed, TABLE, 4, 4, "embed: ids[4] = 9"},
    {"a negative id", embed, -1, 4, 4, "embed: ids[4] = -1"},
    {"a position past the table", embed, 4, 100000000, 4, "embed: pos[4] = 100000000"},
    {"embed_bwd", embed_bwd, 4, 4, 4, NULL},
    {"an id past the table", embed_bwd, TABLE, 4, 4, "embed_bwd: ids[4] = 9, vocabulary 9"},
    {"a negative position", embed_bwd, 4, -7, 4, "embed_bwd: pos[4] = -7, positions 9"},
    {"an id past the table, without positions", embed_ids, TABLE, 4, 4, "embed: ids[4] = 9"},
    {"likewise", embed_ids_bwd, TABLE, 4, 4, "embed_bwd: ids[4] = 9, vocabulary 9"},
    {"rope", rope, 4, 2 * TABLE - 1, 4, NULL},
    {"a position past the table", rope, 4, 2 * TABLE, 4, "rope: pos[4] = 18, positions 18"},
    {"a negative position", rope, 4, -1, 4, "rope: pos[4] = -1, positions 18"},
    {"a position far past the table", rope_bwd, 4, 100000000, 4, "rope_bwd: pos[4] = 100000000"},
    {"rope with norms", rope_norm, 4, 2 * TABLE - 1, 4, NULL},
    {"a position past the table", rope_norm, 4, 2 * TABLE, 4, "rope: pos[4] = 18, positions 18"},
    {"rope_bwd with norms", rope_norm_bwd, 4, 2 * TABLE - 1, 4, NULL},
    {"a position past the table", rope_norm_bwd, 4, 2 * TABLE, 4, "rope_bwd: pos[4] = 18"},
    {"gather", gather, 4, 4, 4, NULL},
    {"a row past x", gather, TABLE, 4, 4, "gather: idx[4] = 9"},
    {"a negative row", gather, -2147483647, 4, 4, "gather: idx[4] = -2147483647"},
    {"scatter_add", scatter_add, 4, 4, 4, NULL},
    {"a row past dx", scatter_add, TABLE, 4, 4, "scatter_add: idx[4] = 9"},
    {"pool", pool, 4, 4, 4, NULL},
    {"a row without tokens", pool, 4, 4, 5, "pool: row 4 has no tokens (offsets 5, 5)"},
    {"a row that goes back", pool, 4, 4, 2, "pool: row"},
    {"tokens before the first", pool, 4, 4, -3, "pool: row 0 has no tokens (offsets -3, 1)"},
    {"tokens past the last", pool, 4, 4, 10, "pool: row 5 ends at token 10, x has room for 9"},
    {"pool_bwd", pool_bwd, 4, 4, 4, NULL},
    {"a row without tokens", pool_bwd, 4, 4, 5, "pool_bwd: row 4 has no tokens"},
    {"tokens before the first", pool_bwd, 4, 4, -3, "pool_bwd: row 0 has no tokens"},
    {"kv_store", kv_store, 4, 4, 4, NULL},
    {"a cache row past the cache", kv_store, TABLE - 4, 4, 4, "kv_store: row 4 reaches cache row"},
    {"a cache row before it", kv_store, -5, 4, 4, "ragged row 4 has kv_base -5"},
    {"more keys than declared", kv_store, 0, TABLE, 4, "ragged row 4 has 10 keys"},
    {"a row of two tokens", kv_store, 4, 4, 3, "ragged row"},
    {"attention", attention, 4, 4, 4, NULL},
    {"the last keys that there are", attention, TABLE - 5, 4, 4, NULL},
    {"keys past the last", attention, TABLE - 4, 4, 4,
     "ragged row 4 has its keys up to token 9, k and v have room for 9"},
    {"keys far past the last", attention, 2147483647, 4, 4, "up to token 2147483651, k and v"},
    {"attention, bf16", attention_bf16, 2 * TABLE - 5, 4, 4, NULL},
    {"keys past the last", attention_bf16, 2 * TABLE - 4, 4, 4,
     "ragged row 4 has its keys up to token 18, k and v have room for 18"},
    {"attention behind a prefix", attention_prefix, TABLE - 4, 4, 4, NULL},
    {"a prefix past the last", attention_prefix, TABLE - 3, 4, 4,
     "ragged row 4 has its prefix up to token 9, k and v have room for 9"},
    {"a key past the last", attention_prefix, 0, 4, TABLE,
     "ragged row 4 has its keys up to token 9, k and v have room for 9"},
};

static void arrays(struct call *k, const struct bad *b, struct args *a) {
    int32_t idx[ROWS], pos[ROWS], offset[ROWS + 1];
    const int attends = b->call == attention_prefix; // `offset` is its kv_base
    const int32_t changed = b->offset < 0 ? 0 : b->offset > ROWS && !attends ? ROWS : 4;
    int32_t first[2 * ROWS] = {0}; // some calls read this as that many f32
    for (int32_t i = 0; i <= ROWS; i++)
        first[i] = i, offset[i] = i == changed ? b->offset : i;
    for (int32_t i = 0; i < ROWS; i++) {
        idx[i] = of_cache(b->call) ? 0 : i; // in the cache, row i is at index i
        pos[i] = i;
    }
    pos[4] = b->pos;
    idx[4] = of_cache(b->call) && b->idx == 4 ? 0 : b->idx;
    const uint64_t table = TABLE * D, rows = ROWS * D;
    a->idx = call_ints(k, idx, ROWS);
    a->pos = call_ints(k, pos, ROWS);
    a->offset = call_ints(k, offset, ROWS + 1);
    a->first = call_ints(k, first, 2 * ROWS);
    a->table = call_floats(k, call_normal(k, 1, table, 1.0), table, RLHF_F32);
    a->other = call_floats(k, call_normal(k, 2, table, 1.0), table, RLHF_F32);
    a->rows = call_floats(k, call_normal(k, 3, rows, 1.0), rows, RLHF_F32);
    a->out = call_zeros(k, rows, RLHF_F32);
}

static void check_text(rlhf_compute *c, rlhf_status st, const struct bad *b) {
    const char *text = kit_said(c);
    if (st != RLHF_E_INVALID || !strstr(text, b->text))
        fail_msg("%s: status %d, \"%s\", expected \"%s\"", b->what, st, text, b->text);
}

static void late(void **state) {
    rlhf_compute *c = ((struct contents *)*state)->late;
    for (size_t i = 0; i < CHECK_COUNT(bads); i++) {
        struct call k = {.c = c};
        struct args a;
        arrays(&k, &bads[i], &a);
        KIT_OK(c, bads[i].call(c, &a));
        if (bads[i].text)
            check_text(c, c->sync(c->ctx), &bads[i]);
        else
            KIT_OK(c, c->sync(c->ctx));
        KIT_OK(c, c->sync(c->ctx)); // reported only once
        call_finish(&k);
    }
}

static void at_once(void **state) {
    rlhf_compute *c = ((struct contents *)*state)->at_once;
    for (size_t i = 0; i < CHECK_COUNT(bads); i++) {
        struct call k = {.c = c};
        struct args a;
        arrays(&k, &bads[i], &a);
        const rlhf_status st = bads[i].call(c, &a);
        if (bads[i].text)
            check_text(c, st, &bads[i]);
        else
            KIT_OK(c, st);
        call_finish(&k);
    }
}

// Row 4 has a bad index. The other rows have the same results as without the bad index.
static void other_rows_are_right(void **state) {
    rlhf_compute *c = ((struct contents *)*state)->late;
    const struct bad good = {"", gather, 4, 4, 4, NULL}, bad = {"", gather, TABLE, 4, 4, ""};
    const struct bad turned = {"", rope, 4, -1, 4, ""};
    op_call *const calls[] = {embed, gather, rope, rope_norm, rope_bwd, rope_norm_bwd};
    float rows[2][ROWS * D];
    for (size_t i = 0; i < CHECK_COUNT(calls); i++)
        for (int b = 0; b < 2; b++) {
            struct call k = {.c = c};
            struct args a;
            arrays(&k, b ? i < 2 ? &bad : &turned : &good, &a);
            KIT_OK(c, calls[i](c, &a));
            assert_int_equal(c->sync(c->ctx), b ? RLHF_E_INVALID : RLHF_OK);
            kit_read(c, rows[b], a.rows, ROWS * D, RLHF_F32);
            call_finish(&k);
            if (!b) continue;
            assert_memory_equal(rows[0], rows[1], 4 * D * sizeof(float));
            assert_memory_equal(rows[0] + 5 * D, rows[1] + 5 * D, D * sizeof(float));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(late), cmocka_unit_test(at_once),
                                       cmocka_unit_test(other_rows_are_right)};
    return cmocka_run_group_tests_name("cuda: contents", tests, setup, teardown);
}
