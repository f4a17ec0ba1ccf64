// test_levels_rows.c: the row operations of the CPU backend give the same bits at every
// instruction-set level, for awkward lengths, large values and denormals. If a function lacks a
// case, the test fails.
#include "levels.h"
#include "support/check.h"

#include <rlhf/compute.h>

#include <stdlib.h>
#include <string.h>

static const size_t lengths[] = {1, 7, 8, 15, 16, 17, 31, 33, 64, 100, 255, 768, 1000, 1025, 3000};
static const float scales[] = {1e-38f, 1e-3f, 3.0f, 40.0f, 100.0f};

struct args {
    size_t n, rows;
    int bf16, kind;
};

#define IN(which) levels_in(l, which, g->bf16)
#define CALL(name)                                                                                 \
    static void call_##name(const struct levels *l, const struct rlhf__hot *t, char *out,          \
                            const void *args) {                                                    \
        const struct args *g = args;                                                               \
        const size_t n = g->n;                                                                     \
        (void)l, (void)n;
#define END }

CALL(to_bf16) t->to_bf16((uint16_t *)(void *)out, l->a, n);
END CALL(to_f32) t->to_f32((float *)(void *)out, l->ha, n);
END CALL(to_f32_pairs) t->to_f32_pairs((float *)(void *)out, l->ha, n);
END CALL(add) memcpy(out, l->b, n * 4);
t->add((float *)(void *)out, IN('a'), g->bf16, n);
END CALL(add_all) const float *src[2] = {l->a, l->b};
float *x = (float *)(void *)out, *to = x + (n + 15) / 16 * 16; // aligned, for streaming stores
memcpy(x, l->c, n * 4);
t->add_all(x, src, (size_t)g->kind, to, g->bf16, n);
if (g->kind == 2) t->add_all(to, src, 2, NULL, 0, n);
END CALL(act) t->act(out, IN('a'), g->kind, g->bf16, n);
END CALL(act_bwd) t->act_bwd(out, IN('b'), IN('a'), g->kind, g->bf16, n);
END CALL(gate) t->gate(out, IN('a'), IN('b'), g->kind, g->bf16, n);
END CALL(gate_bwd) t->gate_bwd(out, out + n * 4, IN('c'), IN('a'), IN('b'), g->kind, g->bf16, n);
END CALL(norm) t->norm(out + 8, g->bf16, (float *)(void *)out, l->a, l->b, l->c, 1e-5f, 1, n);
END CALL(norm_bwd) const float stats[2] = {0.1f, 0.7f};
float *dx = (float *)(void *)out;
t->norm_bwd(dx, 0, dx + n, IN('b'), g->bf16, l->a, stats, l->c, 1, n);
END CALL(rms_norm) t->rms_norm(out + 4, g->bf16, (float *)(void *)out, l->a, l->b,
                               g->kind ? 1.0f : 0.0f, 1e-6f, 1, n);
END CALL(rms_norm_bwd) const float stats[2] = {0.7f, 0.0f};
float *dx = (float *)(void *)out;
t->rms_norm_bwd(dx, 0, dx + n, IN('b'), g->bf16, l->a, stats, l->c, g->kind ? 1.0f : 0.0f, 1, n);
END CALL(sum_parts) t->sum_parts((float *)(void *)out, l->a, n, 3, n);
END CALL(embed) const int32_t ids[3] = {2, 0, 1}, pos[3] = {0, 1, 2};
t->embed((float *)(void *)out, ids, pos, l->a, l->b, 1.0f, 3, n);
if (g->kind)
    t->embed((float *)(void *)out, ids, g->kind & 1 ? pos : NULL, l->a, l->b, 25.25f, 3, n);
END CALL(embed_bwd) const int32_t ids[3] = {1, 0, 1};
t->embed_bwd((float *)(void *)out, l->a, ids, g->kind ? 25.25f : 1.0f, 3, n, 0, n);
END

    static void
    of_lengths(void **state) {
    struct levels *l = *state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
            const size_t n = lengths[i];
            levels_fill(l, n * 3 + 64, scales[s]);
            struct args g = {.n = n};
#define COMPARE(name, bytes) levels_compare(l, #name, call_##name, &g, bytes)
            COMPARE(to_bf16, n * 2);
            COMPARE(to_f32, n * 4);
            COMPARE(to_f32_pairs, (n + n % 2) * 4);
            COMPARE(sum_parts, n * 4);
            for (g.kind = 0; g.kind <= 2; g.kind++) {
                COMPARE(embed, n * 12);
                COMPARE(embed_bwd, n * 8);
            }
            for (g.bf16 = 0; g.bf16 < 2; g.bf16++) {
                COMPARE(add, n * 4);
                for (g.kind = 0; g.kind <= 2; g.kind++)
                    COMPARE(add_all, (n + 15) / 16 * 64 + n * 4);
                COMPARE(norm, n * 4 + 8);
                COMPARE(norm_bwd, n * 12);
                for (g.kind = 0; g.kind <= 1; g.kind++) {
                    COMPARE(rms_norm, n * 4 + 4);
                    COMPARE(rms_norm_bwd, n * 8);
                }
                for (g.kind = RLHF_ACT_GELU_TANH; g.kind <= RLHF_ACT_RELU2; g.kind++) {
                    COMPARE(act, n * 4);
                    COMPARE(act_bwd, n * 4);
                    COMPARE(gate, n * 4);
                    COMPARE(gate_bwd, n * 8);
                }
            }
        }
}

// ---- RoPE ----

struct rope_args {
    size_t half, rest;
    int bf16, with_norm, whole;
};

enum { ROPE_ROWS = 3, ROPE_HEADS = 3, ROPE_KV = 1 };

static size_t rope_stride(const struct rope_args *g) {
    return (ROPE_HEADS + ROPE_KV) * 2 * (g->half + g->rest);
}

static struct rlhf__rope_rows rope_rows(const struct levels *l, const struct rope_args *g,
                                        char *out, const int32_t *pos) {
    const size_t stride = rope_stride(g), bytes = ROPE_ROWS * stride * (g->bf16 ? 2 : 4);
    memcpy(out, levels_in(l, 'a', g->bf16), bytes);
    struct rlhf__rope_rows r = {.x = out,
                                .pos = pos,
                                .turn = l->b,
                                .rows = ROPE_ROWS,
                                .stride = stride,
                                .heads = ROPE_HEADS,
                                .kv_heads = ROPE_KV,
                                .half = g->half,
                                .rest = g->rest,
                                .eps = 1e-6f,
                                .offset = g->with_norm == 2 ? 1.0f : 0.0f,
                                .whole = g->whole};
    if (!g->with_norm) return r;
    r.gamma_q = l->c;
    r.gamma_k = l->c + (g->whole ? 1024 : 256);
    return r;
}

static const int32_t rope_pos[ROPE_ROWS] = {0, 3, 2};

static void call_rope(const struct levels *l, const struct rlhf__hot *t, char *out,
                      const void *args) {
    const struct rope_args *g = args;
    struct rlhf__rope_rows r = rope_rows(l, g, out, rope_pos);
    const size_t bytes = ROPE_ROWS * r.stride * (g->bf16 ? 2 : 4);
    if (g->with_norm) r.stats = (float *)(void *)(out + bytes);
    t->rope(&r, g->bf16);
}

static void call_rope_bwd(const struct levels *l, const struct rlhf__hot *t, char *out,
                          const void *args) {
    const struct rope_args *g = args;
    struct rlhf__rope_rows r = rope_rows(l, g, out, rope_pos);
    const size_t bytes = ROPE_ROWS * r.stride * (g->bf16 ? 2 : 4);
    float stats[ROPE_ROWS * (ROPE_HEADS + ROPE_KV)];
    for (size_t i = 0; i < sizeof stats / sizeof *stats; i++)
        stats[i] = 0.5f + 0.1f * (float)i;
    if (g->with_norm) {
        r.stats = stats;
        r.raw = g->bf16 ? (void *)l->hd : (void *)l->d;
        r.part = (float *)(void *)(out + bytes);
    }
    t->rope_bwd(&r, g->bf16);
}

static void rotations(void **state) {
    struct levels *l = *state;
    struct rope_args g = {.rest = 0};
    for (g.half = 4; g.half <= 64; g.half += 4)
        for (g.bf16 = 0; g.bf16 < 2; g.bf16++)
            for (g.with_norm = 0; g.with_norm < 3; g.with_norm++) {
                if (g.with_norm < 2) levels_fill(l, 8192, 2.0f);
                const size_t bytes = ROPE_ROWS * rope_stride(&g) * (g.bf16 ? 2 : 4);
                levels_compare(l, "rope", call_rope, &g, bytes + 64);
                levels_compare(l, "rope_bwd", call_rope_bwd, &g, bytes + 16 * g.half);
            }
}

// Heads of which only a part is rotated.
static void rotations_of_parts(void **state) {
    struct levels *l = *state;
    struct rope_args g = {.whole = 0};
    for (g.half = 2; g.half <= 36; g.half += 17)
        for (g.rest = 1; g.rest <= 28; g.rest += 9)
            for (g.bf16 = 0; g.bf16 < 2; g.bf16++)
                for (g.with_norm = 0; g.with_norm < 3; g.with_norm++) {
                    levels_fill(l, 8192, 2.0f);
                    const size_t bytes = ROPE_ROWS * rope_stride(&g) * (g.bf16 ? 2 : 4);
                    levels_compare(l, "rope_part", call_rope, &g, bytes + 64);
                    levels_compare(l, "rope_part_bwd", call_rope_bwd, &g,
                                   bytes + 16 * (g.half + g.rest));
                }
}

// ---- attention ----

struct attn_args {
    size_t nq, np, nk, head_dim, group, window;
    int bf16;
    float softcap;
    const float *lse; // backward: the forward results of the first level
    const char *fwd;
};

static struct rlhf__attn_item attn_item(const struct levels *l, const struct attn_args *g) {
    const size_t es = g->bf16 ? 2 : 4, prefix = g->np * g->head_dim * es;
    const char *k = levels_in(l, 'b', g->bf16), *v = levels_in(l, 'c', g->bf16);
    return (struct rlhf__attn_item){.q = levels_in(l, 'a', g->bf16),
                                    .k = k + prefix,
                                    .v = v + prefix,
                                    .pk = k,
                                    .pv = v,
                                    .scratch = l->scratch,
                                    .q_stride = (int64_t)(g->group * g->head_dim),
                                    .kv_stride = (int64_t)g->head_dim,
                                    .out_stride = (int64_t)(g->group * g->head_dim),
                                    .lse_stride = (int64_t)g->group,
                                    .nq = (uint32_t)g->nq,
                                    .nk = (uint32_t)g->nk,
                                    .np = (uint32_t)g->np,
                                    .start = (uint32_t)(g->nk - g->nq),
                                    .room = (uint32_t)g->nk,
                                    .head_dim = (int32_t)g->head_dim,
                                    .group = (int32_t)g->group,
                                    .causal = 1,
                                    .dtype = g->bf16 ? RLHF_BF16 : RLHF_F32,
                                    .window = (uint32_t)g->window,
                                    .scale = 0.2f,
                                    .softcap = g->softcap};
}

static size_t attn_bytes(const struct attn_args *g) {
    return g->nq * g->group * g->head_dim * (g->bf16 ? 2 : 4);
}

static void call_attn(const struct levels *l, const struct rlhf__hot *t, char *out,
                      const void *args) {
    const struct attn_args *g = args;
    struct rlhf__attn_item it = attn_item(l, g);
    it.out = out;
    it.lse = (float *)(void *)(out + attn_bytes(g));
    t->attn(&it);
}

static void call_attn_run(const struct levels *l, const struct rlhf__hot *t, char *out,
                          const void *args) {
    const struct attn_args *g = args;
    int32_t start[64], base[64];
    struct rlhf__attn_run run = {.it = attn_item(l, g), .start = start, .base = base};
    for (size_t i = 0; i < g->nq; i++) {
        start[i] = (int32_t)(g->np + i % 3);
        base[i] = (int32_t)(g->np + i);
    }
    run.it.k = levels_in(l, 'b', g->bf16);
    run.it.v = levels_in(l, 'c', g->bf16);
    run.it.nk = (uint32_t)(g->np + 3);
    run.it.out = out;
    run.it.lse = (float *)(void *)(out + attn_bytes(g));
    t->attn_run(&run);
}

static void call_attn_bwd(const struct levels *l, const struct rlhf__hot *t, char *out,
                          const void *args) {
    const struct attn_args *g = args;
    struct rlhf__attn_item it = attn_item(l, g);
    const size_t q = attn_bytes(g), kv = g->nk * g->head_dim * (g->bf16 ? 2 : 4);
    it.out = (void *)(uintptr_t)g->fwd;
    it.lse = (float *)(uintptr_t)g->lse;
    it.dout = levels_in(l, 'd', g->bf16);
    it.dq = out;
    it.dk = out + q;
    it.dv = out + q + kv;
    t->attn_bwd(&it);
}

// The names under which the three functions are compared.
struct attn_names {
    const char *attn, *attn_run, *attn_bwd;
};

static void attention_of(struct levels *l, struct attn_args *g, const struct attn_names *name) {
    const size_t q = attn_bytes(g), lse = g->nq * g->group * sizeof(float);
    levels_fill(l, (g->head_dim > 128 ? 256 : 64) * 1024, 1.5f);
    levels_compare(l, name->attn, call_attn, g, q + lse);
    if (g->head_dim % 16 == 0 && g->np && g->nq <= 40 && !g->window)
        levels_compare(l, name->attn_run, call_attn_run, g, q + lse);
    if (g->np) return;
    char *fwd = malloc(q + lse);
    assert_non_null(fwd);
    call_attn(l, l->table[0], l->out[0], g);
    memcpy(fwd, l->out[0], q + lse);
    g->fwd = fwd;
    g->lse = (const float *)(const void *)(fwd + q);
    levels_compare(l, name->attn_bwd, call_attn_bwd, g,
                   q + 2 * g->nk * g->head_dim * (g->bf16 ? 2 : 4));
    free(fwd);
}

static void attention(void **state) {
    static const size_t queries[] = {1, 3, 4, 9, 40, 70};
    static const struct attn_names names = {"attn", "attn_run", "attn_bwd"};
    struct levels *l = *state;
    struct attn_args g = {0};
    for (g.bf16 = 0; g.bf16 < 2; g.bf16++)
        for (g.head_dim = 8; g.head_dim <= 128; g.head_dim += g.head_dim == 8 ? 8 : 16)
            for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
                for (g.np = 0; g.np <= 37; g.np += 37)
                    for (g.group = 1; g.group <= 3; g.group += 2) {
                        g.nq = queries[i];
                        g.nk = g.nq + g.np + (g.nq == 1 && !g.np ? 29 : 0);
                        attention_of(l, &g, &names);
                    }
}

// Wide heads, windows that are shorter than a tile, than the row, and longer, and caps.
static void limited_attention(void **state) {
    static const struct attn_names names = {"attn_limited", "attn_run_limited", "attn_bwd_limited"};
    static const struct attn_args limited[] = {{.head_dim = 256},
                                               {.head_dim = 512},
                                               {.head_dim = 40, .window = 1},
                                               {.head_dim = 64, .window = 3},
                                               {.head_dim = 32, .window = 21, .softcap = 0.5f},
                                               {.head_dim = 16, .window = 64},
                                               {.head_dim = 136, .softcap = 0.5f}};
    static const size_t queries[] = {1, 9, 70};
    struct levels *l = *state;
    for (size_t i = 0; i < sizeof limited / sizeof *limited; i++)
        for (size_t n = 0; n < 12 * sizeof queries / sizeof *queries; n++) {
            struct attn_args g = limited[i];
            g.bf16 = n % 2;
            g.np = n / 2 % 2 * 37;
            g.group = 1 + n / 4 % 3;
            g.nq = queries[n / 12];
            g.nk = g.nq + g.np + (g.nq == 1 && !g.np ? 29 : 0);
            attention_of(l, &g, &names);
        }
}

// Norms of whole rows.
static void whole_rotations(void **state) {
    struct levels *l = *state;
    struct rope_args g = {.with_norm = 1, .whole = 1};
    for (g.half = 4; g.half <= 64; g.half += 12)
        for (g.bf16 = 0; g.bf16 < 2; g.bf16++) {
            levels_fill(l, 8192, 2.0f);
            const size_t bytes = ROPE_ROWS * rope_stride(&g) * (g.bf16 ? 2 : 4);
            levels_compare(l, "rope_whole", call_rope, &g, bytes + ROPE_ROWS * 2 * sizeof(float));
            levels_compare(l, "rope_whole_bwd", call_rope_bwd, &g,
                           bytes + (ROPE_HEADS + ROPE_KV) * 2 * g.half * sizeof(float));
        }
}

static void all_functions(void **state) {
#define NAME(name, args) #name,
    static const char *const names[] = {RLHF__HOT_ROWS(NAME) "attn_limited", "attn_run_limited",
                                        "attn_bwd_limited", "rope_whole", "rope_whole_bwd"};
    levels_all_called(*state, names, sizeof names / sizeof *names);
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
        cmocka_unit_test(of_lengths),         cmocka_unit_test(rotations),
        cmocka_unit_test(attention),          cmocka_unit_test(limited_attention),
        cmocka_unit_test(rotations_of_parts), cmocka_unit_test(whole_rotations),
        cmocka_unit_test(all_functions),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
