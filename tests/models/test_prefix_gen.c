// tests/models/test_prefix_gen.c: generation from prompts that are stored once. It samples the same
// bits as generation from complete rows, for any order of storing the prompts. Silent rows do not
// sample. Steps that break the rules of prefix slots are refused.
#include "decoders.h"
#include "families.h"

#include <stdio.h>
#include <string.h>

enum { MAX_ROWS = 64, MAX_LEN = 96, NEW = 8, UNTOUCHED = -7, WORDS = 33 };

// The samples of sampling rows, in order of the batch.
struct drawn {
    int32_t ids[MAX_ROWS][NEW];
    float logp[MAX_ROWS][NEW];
    uint32_t support[MAX_ROWS][NEW][WORDS];
};

// A row in flight: its own tokens, how many of them are known, and how many the model has
// processed.
struct line {
    int32_t ids[MAX_LEN], have, fed, silent, from_step, number; // number: among the sampling rows
};

// The order in which a batch is fed. With AT_ONCE, all rows come in one step. With BACKWARDS, they
// come in one step in reverse order, so a prompt comes after the rows that read it. With STAGGERED,
// first the prompts come in two steps, then the rows in three.
enum order { AT_ONCE, BACKWARDS, STAGGERED };

// The settings of sampling. If `keep` is set, log-probs are computed over the kept tokens only.
struct rule {
    rlhf_dist dist, logp_dist;
    int32_t keep;
};

struct gen {
    struct model *m;
    const rlhf_batch *b;
    struct line line[MAX_ROWS];
    struct drawn *out;
    rlhf_gen_step s;
    int32_t slot[MAX_ROWS], start[MAX_ROWS], offset[MAX_ROWS + 1], next[MAX_ROWS], prefix[MAX_ROWS],
        ids[MAX_ROWS * MAX_LEN];
    uint64_t counter[MAX_ROWS];
    uint8_t silent[MAX_ROWS];
    float logp[MAX_ROWS];
    uint32_t support[MAX_ROWS * WORDS];
};

static void lines_init(struct gen *g, enum order order) {
    const rlhf_batch *b = g->b;
    int32_t number = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        struct line *l = &g->line[i];
        l->silent = b->prefix && i + 1 < b->n && b->prefix[i + 1] == (int32_t)i;
        l->have = b->prompt_len[i];
        l->number = l->silent ? -1 : number++;
        l->from_step = order == STAGGERED && !l->silent ? 2 + (int32_t)i % 3 : 0;
        memcpy(l->ids, b->ids + b->offset[i], (uint64_t)l->have * sizeof *l->ids);
    }
}

static void add(struct gen *g, uint32_t i, int32_t count) {
    struct line *l = &g->line[i];
    const uint32_t r = g->s.n++;
    g->slot[r] = (int32_t)i;
    g->start[r] = l->fed;
    g->prefix[r] = g->b->prefix ? g->b->prefix[i] : -1;
    g->silent[r] = (uint8_t)l->silent;
    g->counter[r] = (uint64_t)l->number * 1000 + (uint64_t)(l->have - g->b->prompt_len[i]);
    g->next[r] = UNTOUCHED;
    g->logp[r] = UNTOUCHED;
    memcpy(g->ids + g->offset[r], l->ids + l->fed, (uint64_t)count * sizeof *g->ids);
    g->offset[r + 1] = g->offset[r] + count;
}

static void lay_out(struct gen *g, int32_t step, enum order order) {
    g->s.n = 0;
    for (uint32_t i = 0; i < MAX_ROWS * WORDS; i++)
        g->support[i] = (uint32_t)UNTOUCHED;
    for (uint32_t k = 0; k < g->b->n; k++) {
        const uint32_t i = order == BACKWARDS ? g->b->n - 1 - k : k;
        const struct line *l = &g->line[i];
        int32_t count = l->have - l->fed;
        if (order == STAGGERED && l->silent && step == 0 && count > 1) count /= 2;
        if (l->from_step > step || count == 0 || l->have - g->b->prompt_len[i] == NEW) continue;
        add(g, i, count);
    }
}

static void take(struct gen *g) {
    const uint32_t words = rlhf_support_words(g->m->info.n_vocab);
    for (uint32_t r = 0; r < g->s.n; r++) {
        struct line *l = &g->line[g->slot[r]];
        const int32_t made = l->have - g->b->prompt_len[g->slot[r]];
        l->fed += g->offset[r + 1] - g->offset[r];
        if (l->silent) {
            assert_int_equal(g->next[r], UNTOUCHED);
            assert_true(g->logp[r] <= UNTOUCHED && g->logp[r] >= UNTOUCHED);
            for (uint32_t w = 0; w < words; w++)
                assert_int_equal(g->support[r * words + w], (uint32_t)UNTOUCHED);
            continue;
        }
        g->out->ids[l->number][made] = l->ids[l->have++] = g->next[r];
        g->out->logp[l->number][made] = g->logp[r];
        memcpy(g->out->support[l->number][made], g->support + r * words, words * 4);
    }
}

static struct drawn *generate(struct model *m, const rlhf_batch *b, const struct rule *rule,
                              enum order order) {
    struct gen *g = test_calloc(1, sizeof *g);
    struct drawn *out = test_calloc(1, sizeof *out);
    rlhf_gen *session = NULL;
    const uint32_t ctx = (uint32_t)m->info.n_ctx;
    g->m = m;
    g->b = b;
    g->out = out;
    g->s = (rlhf_gen_step){.size = sizeof g->s,
                           .slot = g->slot,
                           .start = g->start,
                           .ids = g->ids,
                           .offset = g->offset,
                           .dist = &rule->dist,
                           .logp_dist = &rule->logp_dist,
                           .seed = 11,
                           .stream = rlhf_rng_stream("rollout"),
                           .counter = g->counter,
                           .next = g->next,
                           .logp = g->logp,
                           .prefix = b->prefix ? g->prefix : NULL,
                           .silent = b->prefix ? g->silent : NULL,
                           .support = rule->keep ? g->support : NULL};
    lines_init(g, order);
    must(m, m->ops->gen_open(m->self, b->n, ctx < MAX_LEN ? ctx : MAX_LEN, &session));
    for (int32_t step = 0;; step++) {
        lay_out(g, step, order);
        if (!g->s.n && step > 4) break;
        if (!g->s.n) continue;
        must(m, m->ops->gen_step(m->self, session, &g->s));
        take(g);
    }
    m->ops->gen_close(m->self, session);
    test_free(g);
    return out;
}

static void check(const char *plugin, const struct setting *settings, const struct family *k,
                  int32_t vocab, const char *name, int32_t dtype, uint32_t threads) {
    static const struct rule rules[] = {
        {RLHF_DIST(1 / 0.7, 1, 0, 0), RLHF_DIST(1 / 0.7, 1, 0, 0), 0},
        {RLHF_DIST(1, 0.8, 20, 0), RLHF_DIST(1, 0.8, 20, 0), 0},
        {RLHF_DIST(1.2, 0.8, 20, 0), RLHF_DIST(1.2, 1, 0, 0), 1}};
    const uint32_t guard = strcmp(name, "reference") == 0; // guard: device memory is protected
    struct backend backend = backend_open(name, threads, guard);
    assert_non_null(backend.compute);
    if (!plugin_fits(backend.compute, plugin)) {
        backend_close(&backend);
        return;
    }
    const rlhf_model_open o = open_args(&backend, dtype, 0);
    struct model m = model_open(plugin, settings, &o);
    struct families rows = families_make(k, N_FAMILIES, vocab);
    model_fill(&m, 0.3);
    for (uint32_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        struct drawn *want = generate(&m, &rows.full, &rules[r], AT_ONCE);
        assert_true(want->logp[0][0] < 0 && want->logp[rows.full.n - 1][NEW - 1] < 0);
        for (int order = AT_ONCE; order <= STAGGERED; order++) {
            struct drawn *got = generate(&m, &rows.compact, &rules[r], (enum order)order);
            assert_memory_equal(want->ids, got->ids, sizeof got->ids);
            assert_memory_equal(want->logp, got->logp, sizeof got->logp);
            if (rules[r].keep)
                assert_memory_equal(want->support, got->support, sizeof got->support);
            test_free(got);
        }
        test_free(want);
    }
    families_free(&rows);
    model_close(&m);
    backend_close(&backend);
}

static void test_reference(void **state) {
    (void)state;
    check("gpt2", tiny_gpt2, tiny_families, TINY_VOCAB, "reference", RLHF_F32, 1);
    check("gpt2", tiny_gpt2, tiny_families, TINY_VOCAB, "reference", RLHF_BF16, 1);
    check("qwen3", tiny_qwen3, tiny_families, TINY_VOCAB, "reference", RLHF_F32, 1);
    check("qwen2", tiny_qwen2, tiny_families, TINY_VOCAB, "reference", RLHF_BF16, 1);
    check("mistral", tiny_window, tiny_families, TINY_VOCAB, "reference", RLHF_F32, 1);
    for (int i = 0; i < 2; i++) {
        const int32_t dtype = i ? RLHF_BF16 : RLHF_F32;
        check("lfm2", tiny_lfm2, tiny_families, TINY_VOCAB, "reference", dtype, 1);
        check("lfm2", biased_lfm2, tiny_families, TINY_VOCAB, "reference", dtype, 1);
        check("qwen3_5_text", tiny_qwen3_5, tiny_families, TINY_VOCAB, "reference", dtype, 1);
        check("qwen3_5_text", biased_qwen3_5, tiny_families, TINY_VOCAB, "reference", dtype, 1);
    }
}
static void test_cpu(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads < 3; threads++) {
        check("gpt2", tiny_gpt2, tiny_families, TINY_VOCAB, "cpu", RLHF_BF16, threads);
        check("qwen3", tiny_qwen3, tiny_families, TINY_VOCAB, "cpu", RLHF_BF16, threads);
        check("gemma3_text", tiny_gemma3, tiny_families, TINY_VOCAB, "cpu", RLHF_BF16, threads);
        check("lfm2", biased_lfm2, tiny_families, TINY_VOCAB, "cpu", RLHF_BF16, threads);
        check("qwen3_5_text", tiny_qwen3_5, tiny_families, TINY_VOCAB, "cpu", RLHF_BF16, threads);
        if (backend_is_slow()) {
            check("gpt2", tiny_gpt2, tiny_families, TINY_VOCAB, "cpu", RLHF_F32, threads);
            return;
        }
        check("gpt2", wider_gpt2, wider_families, WIDER_VOCAB, "cpu", RLHF_F32, threads);
        check("gpt2", wider_gpt2, wider_families, WIDER_VOCAB, "cpu", RLHF_BF16, threads);
        check("qwen3", wider_qwen3, wider_families, WIDER_VOCAB, "cpu", RLHF_F32, threads);
        check("qwen3", wider_qwen3, wider_families, WIDER_VOCAB, "cpu", RLHF_BF16, threads);
        check("qwen2", wider_window, wider_families, WIDER_VOCAB, "cpu", RLHF_F32, threads);
        check("lfm2", wider_lfm2, wider_families, WIDER_VOCAB, "cpu", RLHF_F32, threads);
        check("lfm2", wider_lfm2, wider_families, WIDER_VOCAB, "cpu", RLHF_BF16, threads);
        check("qwen3_5_text", wider_qwen3_5, wider_families, WIDER_VOCAB, "cpu", RLHF_F32, threads);
        check("qwen3_5_text", wider_qwen3_5, wider_families, WIDER_VOCAB, "cpu", RLHF_BF16,
              threads);
    }
}

// ---- refusals, each with a message ----

// Rows of one step: slot, start, tokens, prefix, silent. A row with 0 tokens ends the list.
struct row {
    int32_t slot, start, tokens, prefix, silent;
};

static rlhf_status step(struct model *m, rlhf_gen *session, const struct row *rows) {
    int32_t slot[4], start[4], offset[5] = {0}, prefix[4], next[4];
    uint8_t silent[4];
    static const int32_t ids[64] = {0};
    static const uint64_t counter[4] = {0};
    float logp[4];
    uint32_t n = 0;
    for (; n < 4 && rows[n].tokens; n++) {
        slot[n] = rows[n].slot;
        start[n] = rows[n].start;
        prefix[n] = rows[n].prefix;
        silent[n] = (uint8_t)rows[n].silent;
        offset[n + 1] = offset[n] + rows[n].tokens;
    }
    const rlhf_gen_step s = {.size = sizeof s,
                             .n = n,
                             .slot = slot,
                             .start = start,
                             .ids = ids,
                             .offset = offset,
                             .counter = counter,
                             .next = next,
                             .logp = logp,
                             .prefix = prefix,
                             .silent = silent};
    host_failure_clear();
    return m->ops->gen_step(m->self, session, &s);
}

// Slot 0 holds a prompt of 4 tokens, slot 1 continues it, and slot 2 is independent. Each case
// starts from this state.
static void test_refused(void **state) {
    (void)state;
    static const struct row before[] = {
        {0, 0, 4, -1, 1}, {1, 0, 2, 0, 0}, {2, 0, 3, -1, 0}, {0, 0, 0, 0, 0}};
    static const struct {
        struct row rows[3];
        const char *text;
    } cases[] = {
        {{{2, 0, 1, 4, 0}}, "row 0: prefix slot 4 is out of range"},
        {{{2, 0, 1, -2, 0}}, "row 0: prefix slot -2 is out of range"},
        {{{2, 0, 1, 3, 0}}, "row 0: prefix slot 3 is empty"},
        {{{2, 0, 1, 1, 0}}, "row 0: prefix slot 1 has a prefix of its own"},
        {{{2, 0, 1, 2, 1}}, "row 0: prefix slot 2 is written to in this step"},
        {{{0, 0, 4, -1, 0}, {2, 0, 1, 0, 0}}, "row 1: prefix slot 0 is written to in this step"},
        {{{1, 2, 1, -1, 0}}, "row 0: prefix -1, but slot 1 was begun with prefix 0"},
        {{{2, 3, 1, 0, 0}}, "row 0: prefix 0, but slot 2 was begun with prefix -1"},
        {{{0, 4, 1, -1, 1}, {1, 2, 1, 0, 0}}, "slot 0 was written to after slot 1 was begun"},
        {{{2, 0, 21, 0, 0}}, "row 0: 25 tokens with its prefix do not fit the model's context"},
    };
    static const struct row refill[] = {{0, 0, 4, -1, 1}, {0, 0, 0, 0, 0}},
                            follow[] = {{1, 2, 1, 0, 0}, {0, 0, 0, 0, 0}};
    struct backend backend = backend_open("reference", 1, 0);
    const rlhf_model_open o = open_args(&backend, RLHF_F32, 0);
    struct model m = model_open("gpt2", tiny_gpt2, &o);
    rlhf_gen *g = NULL;
    model_fill(&m, 0.3);
    must(&m, m.ops->gen_open(m.self, 4, 24, &g));
    must(&m, step(&m, g, before));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(step(&m, g, cases[i].rows), RLHF_E_INVALID);
        if (!strstr(host_failure(), cases[i].text))
            fail_msg("\"%s\" does not say \"%s\"", host_failure(), cases[i].text);
    }
    must(&m, step(&m, g, follow)); // a refused step changes nothing
    must(&m, step(&m, g, refill));
    assert_int_equal(step(&m, g, (struct row[]){{1, 3, 1, 0, 0}, {0, 0, 0, 0, 0}}), RLHF_E_INVALID);
    assert_non_null(strstr(host_failure(), "slot 0 was written to after slot 1 was begun"));
    must(&m, step(&m, g, (struct row[]){{1, 0, 1, 0, 0}, {0, 0, 0, 0, 0}}));
    m.ops->gen_close(m.self, g);
    model_close(&m);
    backend_close(&backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reference), cmocka_unit_test(test_cpu),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests_name("generation on shared prompts", tests, NULL, NULL);
}
