// tests/models/test_window_gen.c: layers with a window keep only what a later token can see, in
// every way to fill a slot: prompts and later tokens in pieces around the window's length, shared
// prompts longer than the window, slots that were decoded and then become prefixes, rows of all
// kinds in one step. Each sampled token has the log-prob, bit for bit, of forward() over its whole
// row, and the cache has the memory of the kept tokens.
#include "support.h"

#include <stdio.h>
#include <string.h>

enum { SLOTS = 6, MAX_OWN = 90, CONTEXT = 2 * MAX_OWN, VOCAB = 61, STEPS = 160, LAYERS = 3 };

// What a slot holds. prefix -1: none. A dead slot may only be begun again.
struct line {
    int32_t ids[MAX_OWN], held, prefix, dead;
};

// What the test met.
struct met {
    uint32_t sampled, long_rows, long_prefixes, edges[3], mixed;
};

struct game {
    struct model m;
    rlhf_gen *cache;
    struct line line[SLOTS];
    int32_t window;
    uint32_t seed;
    // the step
    int32_t slot[SLOTS], start[SLOTS], offset[SLOTS + 1], next[SLOTS], prefix[SLOTS];
    int32_t ids[SLOTS * MAX_OWN], use[SLOTS]; // use 1: written, 2: filled, 3: read
    uint8_t silent[SLOTS];
    float logp[SLOTS];
    uint32_t n;
    struct met met;
};

static int32_t draw(struct game *g, int32_t n) {
    g->seed = g->seed * 1664525u + 1013904223u;
    return (int32_t)((g->seed >> 8) % (uint32_t)n);
}

// One token most often, otherwise a piece around one or more windows.
static int32_t piece(struct game *g) {
    const int32_t w = g->window, from[] = {w - 1, w, w + 1, 2 * w + 1, 3 * w, 2, 5};
    if (draw(g, 3)) return 1;
    const int32_t n = from[draw(g, sizeof from / sizeof *from)];
    return n < 1 ? 1 : n > MAX_OWN ? MAX_OWN : n;
}

// A prefix for a slot that begins, or -1.
static int32_t choose_prefix(struct game *g, int32_t slot) {
    const int32_t p = draw(g, SLOTS + 2);
    if (p >= SLOTS || p == slot || g->use[p] == 1) return -1;
    return g->line[p].held && g->line[p].prefix < 0 && !g->line[p].dead ? p : -1;
}

// Adds a row for a slot to the step, if the slot is free for it.
static void add(struct game *g, int32_t slot) {
    struct line *l = &g->line[slot];
    int32_t n = piece(g), p = l->prefix;
    if (g->use[slot]) return;
    const int begins = !l->held || l->dead || draw(g, 12) == 0 || l->held + n > MAX_OWN;
    if (begins) p = choose_prefix(g, slot);
    if (!begins && p >= 0 && g->use[p] && g->use[p] != 3) return;
    if (begins) *l = (struct line){.prefix = p};
    const uint32_t r = g->n++;
    const int32_t silent = draw(g, 4) == 0, before = p < 0 ? 0 : g->line[p].held;
    g->slot[r] = slot;
    g->start[r] = l->held;
    g->prefix[r] = p;
    g->silent[r] = (uint8_t)silent;
    g->use[slot] = silent && p < 0 ? 2 : 1;
    if (p >= 0 && !g->use[p]) g->use[p] = 3;
    for (int32_t k = 0; k < n; k++)
        l->ids[l->held++] = draw(g, VOCAB);
    memcpy(g->ids + g->offset[r], l->ids + g->start[r], (size_t)n * sizeof *g->ids);
    g->offset[r + 1] = g->offset[r] + n;
    for (int32_t i = 0; i < SLOTS; i++)
        if (g->line[i].held && g->line[i].prefix == slot) g->line[i].dead = 1;
    g->met.long_rows += l->held + before >= 3 * g->window;
    g->met.long_prefixes += before > g->window;
    for (int32_t k = 0; k < 3; k++)
        g->met.edges[k] += n == g->window - 1 + k;
}

// Compares a row's sample with forward() over the row.
static void compare(struct game *g, uint32_t r) {
    const struct line *l = &g->line[g->slot[r]], *p = l->prefix < 0 ? NULL : &g->line[l->prefix];
    int32_t ids[CONTEXT + 1], n = 0;
    float logp[CONTEXT + 1];
    for (int32_t k = 0; p && k < p->held; k++)
        ids[n++] = p->ids[k];
    for (int32_t k = 0; k < l->held; k++)
        ids[n++] = l->ids[k];
    ids[n] = g->next[r];
    const int32_t offset[] = {0, n + 1};
    const rlhf_batch b = {.size = sizeof b,
                          .n = 1,
                          .total = (uint32_t)n + 1,
                          .ids = ids,
                          .offset = offset,
                          .prompt_len = &n};
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP};
    const rlhf_heads h = {.size = sizeof h, .logp = logp};
    must(&g->m, g->m.ops->forward(g->m.self, &b, &f, &h));
    g->met.sampled++;
    if (memcmp(&logp[n], &g->logp[r], sizeof *logp) != 0)
        fail_msg("window %d, a row of %d tokens (%d of a prefix), %d of them new: sampled %.9g, "
                 "forward %.9g",
                 g->window, n, p ? p->held : 0, g->offset[r + 1] - g->offset[r], (double)g->logp[r],
                 (double)logp[n]);
}

static void step(struct game *g) {
    static const uint64_t counter[SLOTS] = {1, 2, 3, 4, 5, 6};
    const int32_t rows = 1 + draw(g, SLOTS);
    int32_t one = 0, many = 0;
    g->n = 0;
    memset(g->use, 0, sizeof g->use);
    for (int32_t i = 0; i < rows; i++)
        add(g, draw(g, SLOTS));
    const rlhf_gen_step s = {.size = sizeof s,
                             .n = g->n,
                             .slot = g->slot,
                             .start = g->start,
                             .ids = g->ids,
                             .offset = g->offset,
                             .seed = 11,
                             .stream = 5,
                             .counter = counter,
                             .next = g->next,
                             .logp = g->logp,
                             .prefix = g->prefix,
                             .silent = g->silent};
    if (!g->n) return;
    must(&g->m, g->m.ops->gen_step(g->m.self, g->cache, &s));
    for (uint32_t r = 0; r < g->n; r++) {
        one |= g->offset[r + 1] - g->offset[r] == 1;
        many |= g->offset[r + 1] - g->offset[r] > g->window;
        if (!g->silent[r]) compare(g, r);
    }
    g->met.mixed += one && many;
}

// ---- cases ----

static const char *backend_name;

static void play(int32_t window, int32_t windowed, int32_t dtype, uint32_t seed) {
    char text[2][12];
    snprintf(text[0], sizeof text[0], "%d", window);
    snprintf(text[1], sizeof text[1], "%d", LAYERS - windowed);
    const struct setting settings[] = {{"vocab_size", "61"},
                                       {"hidden_size", "16"},
                                       {"intermediate_size", "20"},
                                       {"num_hidden_layers", "3"},
                                       {"max_position_embeddings", "256"},
                                       {"num_attention_heads", "4"},
                                       {"num_key_value_heads", "2"},
                                       {"head_dim", "16"},
                                       {"use_sliding_window", "1"},
                                       {"sliding_window", text[0]},
                                       {"max_window_layers", text[1]},
                                       {NULL, NULL}};
    struct backend backend = backend_open(backend_name, 2, 0);
    const rlhf_model_open o = open_args(&backend, dtype, 0);
    struct game *g = test_calloc(1, sizeof *g);
    g->m = model_open("qwen2", settings, &o);
    g->window = window;
    g->seed = seed;
    model_fill(&g->m, 0.5);
    const rlhf_compute *c = backend.compute;
    const uint64_t before = c->bytes_in_use(c->ctx);
    must(&g->m, g->m.ops->gen_open(g->m.self, SLOTS, MAX_OWN, &g->cache));
    const uint64_t tokens = (uint64_t)(windowed * window + (LAYERS - windowed) * MAX_OWN);
    const uint64_t slots = RLHF_COMPUTE_HAS(c, record) ? SLOTS + 1 : SLOTS; // the spare slot
    const uint64_t want = 2 * 2 * 16 * tokens * slots * rlhf_dtype_size(dtype);
    const uint64_t got = c->bytes_in_use(c->ctx) - before;
    if (got < want || got > want + 8192)
        fail_msg("the cache has %llu bytes, its tokens %llu", (unsigned long long)got,
                 (unsigned long long)want);
    for (int32_t i = 0; i < (backend_is_slow() ? STEPS / 8 : STEPS); i++)
        step(g);
    g->m.ops->gen_close(g->m.self, g->cache);
    assert_true(c->bytes_in_use(c->ctx) >= before);
    const struct met *m = &g->met;
    if (!backend_is_slow() && window < 20)
        assert_true(m->sampled > 100 && m->long_rows > 20 && m->long_prefixes > 5 &&
                    m->edges[1] > 5 && m->edges[2] > 5 && m->mixed > 5);
    model_close(&g->m);
    backend_close(&backend);
    test_free(g);
}

static void short_windows(void **state) {
    (void)state;
    play(1, LAYERS, RLHF_F32, 1);
    play(2, 2, RLHF_BF16, 2);
    play(5, 2, RLHF_F32, 3);
    play(5, LAYERS, RLHF_BF16, 4);
}

// Windows of a vector of keys, and just beside it.
static void vectors_of_keys(void **state) {
    (void)state;
    if (backend_is_slow()) return;
    for (int32_t w = 15; w < 18; w++) {
        play(w, 2, RLHF_F32, (uint32_t)w);
        play(w, 2, RLHF_BF16, (uint32_t)w + 100);
    }
}

// A window that is one token shorter than the slots.
static void long_window(void **state) {
    (void)state;
    play(MAX_OWN - 1, 2, RLHF_F32, 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(short_windows),
                                       cmocka_unit_test(vectors_of_keys),
                                       cmocka_unit_test(long_window)};
    static const char *const names[] = {"reference", "cpu"};
    int failed = 0;
    for (int i = 0; i < 2; i++) {
        backend_name = names[i];
        failed += cmocka_run_group_tests_name(names[i], tests, NULL, NULL);
    }
    return failed;
}
