// test_decode.c: continuous batching with shared prompts. The model is a function: the next token
// is a hash of everything that its row has read and of the draw's counter.
#include "support/check.h"

#include "sample/decode.h"

#include <stdlib.h>
#include <string.h>

#define MAX_LEN    64
#define MAX_CACHES 64
#define STOP       7
#define VOCAB      11

// A session: the ids in every cache, and a record of the steps.
struct rlhf_gen {
    uint32_t n;
    int32_t len[MAX_CACHES], ids[MAX_CACHES][MAX_LEN];
    int64_t tokens, silent, steps, draws;
    int32_t apart; // 1: starting and continuing rows are in separate steps; 2: rows of one token
                   // are in separate steps
    int32_t reserved;
    char broken[128]; // the first violated rule of rlhf_gen_step
};

static void broke(struct rlhf_gen *g, const char *what) {
    if (!g->broken[0]) strncpy(g->broken, what, sizeof g->broken - 1);
}

static uint64_t mix(uint64_t h, uint64_t x) {
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

static uint64_t mix_cache(const struct rlhf_gen *g, int32_t slot, uint64_t h) {
    for (int32_t k = 0; k < g->len[slot]; k++)
        h = mix(h, (uint64_t)g->ids[slot][k] + 1);
    return h;
}

static void store(struct rlhf_gen *g, const rlhf_gen_step *s, uint32_t i) {
    int32_t slot = s->slot[i], n = s->offset[i + 1] - s->offset[i];
    if (slot < 0 || (uint32_t)slot >= g->n) {
        broke(g, "slot out of range");
        return;
    }
    if (s->start[i] == 0) g->len[slot] = 0;
    if (s->start[i] != g->len[slot]) broke(g, "start is not what the slot holds");
    if (n < 1 || g->len[slot] + n > MAX_LEN) {
        broke(g, "tokens do not fit");
        return;
    }
    memcpy(g->ids[slot] + g->len[slot], s->ids + s->offset[i], (size_t)n * sizeof *s->ids);
    g->len[slot] += n;
}

static int is_row(const rlhf_gen_step *s, int32_t slot) {
    for (uint32_t i = 0; i < s->n; i++)
        if (s->slot[i] == slot && !(s->silent && s->silent[i])) return 1;
    return 0;
}

static int is_going_on(const rlhf_gen_step *s, uint32_t i) {
    return s->start[i] > 0 && s->offset[i + 1] - s->offset[i] == 1;
}

static rlhf_status gen_step(void *self, rlhf_gen *g, const rlhf_gen_step *s) {
    (void)self;
    g->steps++;
    g->tokens += s->offset[s->n];
    for (uint32_t i = 0; i < s->n; i++) {
        if (g->apart == 1 && !s->start[i] != !s->start[0])
            broke(g, "starting and going on in one step");
        if (g->apart == 2 && g->len[s->slot[i]] > 0 && !is_going_on(s, i) != !is_going_on(s, 0))
            broke(g, "reading and going on in one step");
        store(g, s, i);
        for (uint32_t k = 0; k < i; k++)
            if (s->slot[k] == s->slot[i]) broke(g, "a slot is used twice");
    }
    for (uint32_t i = 0; i < s->n && !g->broken[0]; i++) {
        int32_t prefix = s->prefix ? s->prefix[i] : -1;
        if (s->silent && s->silent[i]) {
            g->silent++;
            if (prefix >= 0) broke(g, "a prefix of a prefix");
            continue;
        }
        if (prefix >= 0 && is_row(s, prefix)) broke(g, "a prefix that is also a row");
        uint64_t h = prefix >= 0 ? mix_cache(g, prefix, 1) : 1;
        h = mix_cache(g, s->slot[i], h);
        h = mix(h, s->counter[i]);
        s->next[i] = (int32_t)(h % VOCAB);
        s->logp[i] = -(float)(h % 1009) / 16;
        g->draws++;
    }
    return RLHF_OK;
}

static const rlhf_model_ops ops = {.size = sizeof ops, .gen_step = gen_step};

static struct rlhf__model model(uint32_t caps) {
    static const struct rlhf__plugin plugin = {.desc = {.kind = RLHF_KIND_MODEL, .id = "fake"}};
    static struct rlhf__instance instance = {.plugin = &plugin};
    return (struct rlhf__model){.ops = &ops, .info = {.caps = caps}, .instance = &instance};
}

// ---- requests ----

struct prompts {
    uint32_t n;
    const int32_t *ids[64];
    int32_t len[64];
};

static int32_t pool[256];

// Makes `groups` prompts of `len` tokens, with `each` rows per prompt. The last prompt has `last`
// tokens.
static struct prompts grouped(uint32_t groups, uint32_t each, int32_t len, int32_t last) {
    struct prompts p = {0};
    for (int32_t k = 0; k < 256; k++)
        pool[k] = (k * 7 + k / 13) % VOCAB;
    for (uint32_t i = 0; i < groups * each; i++) {
        p.ids[i] = pool + i / each * 16;
        p.len[i] = i / each == groups - 1 ? last : len;
    }
    p.n = groups * each;
    return p;
}

static struct rlhf__gen_result draw_on(const rlhf_compute *compute, const struct prompts *p,
                                       uint32_t slots, uint32_t prefix_slots, int32_t stop,
                                       struct rlhf_gen *g) {
    static const rlhf_dist dist = RLHF_DIST_WHOLE;
    struct rlhf__model m = model(RLHF_CAP_GENERATE | RLHF_CAP_PREFIX);
    memset(g, 0, sizeof *g);
    m.compute = compute;
    g->apart = compute != NULL;
    g->n = slots + prefix_slots;
    const struct rlhf__ends ends = {.n = 2, .id = {-7, stop}}; // -7 is not sampled
    struct rlhf__gen_request q = {.n = p->n,
                                  .slots = slots,
                                  .prefix_slots = prefix_slots,
                                  .prompt = p->ids,
                                  .prompt_len = p->len,
                                  .max_new = 9,
                                  .ends = &ends,
                                  .dist = &dist,
                                  .logp_dist = &dist,
                                  .seed = 1,
                                  .stream = 2,
                                  .first = 100};
    struct rlhf__gen_result r = {0};
    assert_int_equal(rlhf__generate(&m, g, &q, &r, NULL), RLHF_OK);
    assert_string_equal(g->broken, "");
    assert_int_equal(r.tokens, g->tokens);
    return r;
}

static struct rlhf__gen_result draw(const struct prompts *p, uint32_t slots, uint32_t prefix_slots,
                                    int32_t stop, struct rlhf_gen *g) {
    return draw_on(NULL, p, slots, prefix_slots, stop, g);
}

static void same_result(const struct rlhf__gen_result *a, const struct rlhf__gen_result *b,
                        uint32_t n) {
    assert_memory_equal(a->len, b->len, n * sizeof *a->len);
    assert_memory_equal(a->stopped, b->stopped, n);
    assert_memory_equal(a->ids, b->ids, n * (size_t)a->stride * sizeof *a->ids);
    assert_memory_equal(a->logp, b->logp, n * (size_t)a->stride * sizeof *a->logp);
}

// ---- tests ----

// The samples do not change if there are fewer slots than rows, if groups are larger than the
// number of slots or do not divide it, if responses have different lengths, or if there are few
// caches.
static void sharing_changes_nothing(void **state) {
    (void)state;
    struct rlhf_gen *g = calloc(1, sizeof *g);
    assert_non_null(g);
    static const uint32_t slots[] = {1, 2, 3, 5, 8, 24}, caches[] = {1, 2, 3, 9};
    struct prompts p = grouped(6, 4, 9, 5);
    for (int stop = -1; stop <= STOP; stop += STOP + 1) {
        struct rlhf__gen_result plain = draw(&p, 24, 0, stop, g);
        for (size_t i = 0; i < 6; i++)
            for (size_t k = 0; k < 4; k++) {
                struct rlhf__gen_result r = draw(&p, slots[i], caches[k], stop, g);
                same_result(&plain, &r, p.n);
                assert_true(g->silent > 0);
                rlhf__gen_result_finish(&r);
            }
        rlhf__gen_result_finish(&plain);
    }
    free(g);
}

static rlhf_status record(void *ctx, uint64_t key, int32_t *what) {
    (void)ctx;
    (void)key;
    (void)what;
    return RLHF_OK;
}

// On a device that records calls, rows that feed one token get separate steps. The samples are the
// same as on other devices.
static void steps_apart_draw_the_same(void **state) {
    (void)state;
    struct rlhf_gen *g = calloc(1, sizeof *g);
    assert_non_null(g);
    const rlhf_compute table = {.size = sizeof table, .record = record};
    static const uint32_t slots[] = {1, 3, 8, 24}, caches[] = {0, 2, 9};
    struct prompts p = grouped(6, 4, 9, 5);
    for (int stop = -1; stop <= STOP; stop += STOP + 1) {
        struct rlhf__gen_result plain = draw(&p, 24, 0, stop, g);
        for (size_t i = 0; i < 4; i++)
            for (size_t k = 0; k < 3; k++) {
                struct rlhf__gen_result r = draw_on(&table, &p, slots[i], caches[k], stop, g);
                same_result(&plain, &r, p.n);
                rlhf__gen_result_finish(&r);
            }
        rlhf__gen_result_finish(&plain);
    }
    free(g);
}

// Of a prompt of 9 tokens, the model processes the first 8 once for the group, and the last one for
// each row. It also processes the sampled tokens, except each row's last one.
static void tokens_are_counted_once(void **state) {
    (void)state;
    struct rlhf_gen *g = calloc(1, sizeof *g);
    assert_non_null(g);
    struct prompts p = grouped(3, 8, 9, 9);
    struct rlhf__gen_result r = draw(&p, 4, 2, -1, g); // groups larger than the slots
    assert_int_equal(g->silent, 3);
    assert_int_equal(r.tokens, 3 * 8 + 24 + 24 * 8);
    rlhf__gen_result_finish(&r);
    r = draw(&p, 4, 0, -1, g);
    assert_int_equal(r.tokens, 24 * 9 + 24 * 8);
    rlhf__gen_result_finish(&r);
    // If rows end at different times, a prompt may still be in use when the next prompt starts. Two
    // caches then suffice.
    r = draw(&p, 4, 2, STOP, g);
    assert_int_equal(g->silent, 3);
    rlhf__gen_result_finish(&r);
    free(g);
}

static void what_cannot_be_shared_is_written_out(void **state) {
    (void)state;
    struct rlhf_gen *g = calloc(1, sizeof *g);
    assert_non_null(g);
    struct prompts one = grouped(2, 4, 1, 1), single = grouped(8, 1, 9, 9);
    struct rlhf__gen_result r =
        draw(&one, 4, 2, -1, g); // a prompt of one token has no prefix to share
    assert_int_equal(g->silent, 0);
    rlhf__gen_result_finish(&r);
    r = draw(&single, 4, 2, -1, g); // the only row of its prompt
    assert_int_equal(g->silent, 0);
    rlhf__gen_result_finish(&r);
    free(g);
}

static void caches_for_a_slots_worth_of_groups(void **state) {
    (void)state;
    struct rlhf__model m = model(RLHF_CAP_GENERATE | RLHF_CAP_PREFIX);
    assert_int_equal(rlhf__prefix_slots(&m, 64, 8), 9);
    assert_int_equal(rlhf__prefix_slots(&m, 3, 8), 2);
    assert_int_equal(rlhf__prefix_slots(&m, 9, 4), 4);
    assert_int_equal(rlhf__prefix_slots(&m, 64, 1), 0);
    m = model(RLHF_CAP_GENERATE);
    assert_int_equal(rlhf__prefix_slots(&m, 64, 8), 0);
}

// ---- several turns ----

enum { TURNS = 3, LONGEST = 60, READ_MOST = 5 };

// The tokens with which the environment answers a sequence, and the number of calls of advance()
// after which it answers.
struct answers {
    const struct prompts *from;
    const int32_t *prompt[64]; // NULL until the group's first sequence begins
    int32_t len[64];
    uint32_t group, delays;
    int32_t wait[64], turns[64], n[64], ids[64][READ_MOST];
    uint32_t begun, open, most_open; // sequences that began, and that are neither over
    int32_t idle;                    // calls with wait 1
    uint32_t reserved;
};

static void pause_for(struct answers *a, uint32_t i) {
    a->delays = a->delays * 1664525u + 1013904223u;
    a->wait[i] = (int32_t)(a->delays >> 16) % 5;
}

static rlhf_status answer_begin(void *ctx, uint32_t i, struct rlhf__error *err) {
    struct answers *a = ctx;
    (void)err;
    const uint32_t first = i / a->group * a->group;
    for (uint32_t k = first; k < first + a->group; k++) {
        a->prompt[k] = a->from->ids[k];
        a->len[k] = a->from->len[k];
    }
    a->begun++;
    if (++a->open > a->most_open) a->most_open = a->open;
    pause_for(a, i);
    return RLHF_OK;
}

// The environment's answer depends on the sequence, its turn and the last token that it drew.
static rlhf_status answer_ended(void *ctx, uint32_t i, const int32_t *ids, int32_t n, int stopped,
                                struct rlhf__error *err) {
    struct answers *a = ctx;
    (void)err;
    assert_true(n >= 1 && n <= 9 && (stopped ? ids[n - 1] == STOP : n == 9));
    uint64_t h = mix(mix(i, (uint64_t)++a->turns[i]), (uint64_t)ids[n - 1]);
    a->n[i] = 1 + (int32_t)(h % READ_MOST);
    for (int32_t k = 0; k < a->n[i]; k++)
        a->ids[i][k] = (int32_t)((h = mix(h, 3)) % VOCAB);
    pause_for(a, i);
    return RLHF_OK;
}

static rlhf_status answer_advance(void *ctx, int wait, struct rlhf__error *err) {
    struct answers *a = ctx;
    (void)err;
    a->idle += wait;
    for (uint32_t i = 0; i < a->from->n; i++)
        if (a->wait[i] > 0) a->wait[i]--;
    return RLHF_OK;
}

static int answer_next(void *ctx, uint32_t i, const int32_t **ids, int32_t *n) {
    struct answers *a = ctx;
    if (a->wait[i] > 0) return RLHF__GEN_WAIT;
    *ids = a->ids[i];
    *n = a->n[i];
    if (a->turns[i] < TURNS) return RLHF__GEN_READ;
    a->open--;
    return RLHF__GEN_OVER;
}

static struct rlhf__gen_result draw_turns(const rlhf_compute *compute, const struct prompts *p,
                                          uint32_t slots, uint32_t caches, uint32_t delays,
                                          struct answers *a, struct rlhf_gen *g) {
    static const rlhf_dist dist = RLHF_DIST_WHOLE;
    struct rlhf__model m = model(RLHF_CAP_GENERATE | RLHF_CAP_PREFIX);
    *a = (struct answers){.from = p, .group = 4, .delays = delays};
    memset(g, 0, sizeof *g);
    m.compute = compute;
    g->apart = compute ? 2 : 0;
    g->n = slots + caches;
    const struct rlhf__ends ends = {.n = 1, .id = {STOP}};
    const struct rlhf__gen_turns turns = {.ctx = a,
                                          .longest = LONGEST,
                                          .begin = answer_begin,
                                          .ended = answer_ended,
                                          .advance = answer_advance,
                                          .next = answer_next};
    const struct rlhf__gen_request q = {.n = p->n,
                                        .slots = slots,
                                        .prefix_slots = caches,
                                        .prompt = a->prompt,
                                        .prompt_len = a->len,
                                        .max_new = 9,
                                        .ends = &ends,
                                        .dist = &dist,
                                        .logp_dist = &dist,
                                        .seed = 1,
                                        .stream = 2,
                                        .first = 100,
                                        .turns = &turns};
    struct rlhf__gen_result r = {0};
    assert_int_equal(rlhf__generate(&m, g, &q, &r, NULL), RLHF_OK);
    assert_string_equal(g->broken, "");
    assert_int_equal(r.tokens, g->tokens);
    assert_true(a->open == 0 && a->begun == p->n && a->most_open <= slots);
    return r;
}

// Counts the tokens of a turn (-1: tokens that were read), and checks that turns follow each other.
static int32_t tokens_of(const struct rlhf__gen_result *r, uint32_t i, int32_t turn) {
    int32_t n = 0, last = 0;
    for (int32_t k = 0; k < r->len[i]; k++) {
        const int32_t t = r->turn[(size_t)i * (size_t)r->stride + (size_t)k];
        assert_true(t == -1 || t == last || t == last + 1);
        if (t >= 0) last = t;
        n += t == turn;
    }
    assert_int_equal(last, TURNS - 1);
    return n;
}

// The tokens do not depend on how long sequences wait, on slots, on shared prompts, or on separate
// steps. The fake model draws from a hash of the cache, so the cache must hold all that a row has
// read.
static void waiting_changes_nothing(void **state) {
    (void)state;
    struct rlhf_gen *g = calloc(1, sizeof *g);
    struct answers *a = calloc(1, sizeof *a);
    assert_true(g && a);
    const rlhf_compute table = {.size = sizeof table, .record = record};
    static const uint32_t slots[] = {1, 2, 3, 8, 24}, caches[] = {0, 1, 3, 9};
    struct prompts p = grouped(6, 4, 9, 5);
    struct rlhf__gen_result first = draw_turns(NULL, &p, 24, 0, 7, a, g);
    for (uint32_t i = 0; i < p.n; i++)
        for (int32_t turn = -1; turn < TURNS; turn++)
            assert_true(tokens_of(&first, i, turn) >= (turn < 0 ? TURNS - 1 : 1));
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < 4; k++)
            for (uint32_t delays = 1; delays < 4; delays++) {
                struct rlhf__gen_result r =
                    draw_turns(delays == 3 ? &table : NULL, &p, slots[i], caches[k], delays, a, g);
                same_result(&first, &r, p.n);
                assert_memory_equal(first.turn, r.turn, p.n * (size_t)r.stride * sizeof *r.turn);
                assert_true(caches[k] == 0 || g->silent > 0);
                rlhf__gen_result_finish(&r);
            }
    rlhf__gen_result_finish(&first);
    free(a);
    free(g);
}

// While any sequence can continue, steps are taken. The decoder waits only if all sequences wait.
static void others_go_on(void **state) {
    (void)state;
    struct rlhf_gen *g = calloc(1, sizeof *g);
    struct answers *a = calloc(1, sizeof *a);
    assert_true(g && a);
    struct prompts p = grouped(6, 4, 9, 5);
    struct rlhf__gen_result r = draw_turns(NULL, &p, 1, 0, 7, a, g);
    assert_true(a->idle > 40); // the decoder waits for a single sequence
    rlhf__gen_result_finish(&r);
    r = draw_turns(NULL, &p, 24, 0, 7, a, g);
    assert_true(a->idle < 5 && g->steps < 40); // waiting for all of them: 7 and 54
    rlhf__gen_result_finish(&r);
    free(a);
    free(g);
}

// If a sequence ends at its beginning, it draws no tokens and leaves its slot to the next sequence.
static int over_at_once(void *ctx, uint32_t i, const int32_t **ids, int32_t *n) {
    struct answers *a = ctx;
    if (i % 2 == 0 && a->turns[i] == 0) a->turns[i] = TURNS;
    return answer_next(ctx, i, ids, n);
}

static void a_sequence_may_end_before_it_begins(void **state) {
    (void)state;
    static const rlhf_dist dist = RLHF_DIST_WHOLE;
    struct rlhf_gen *g = calloc(1, sizeof *g);
    struct answers *a = calloc(1, sizeof *a);
    assert_true(g && a);
    struct prompts p = grouped(6, 4, 9, 5);
    struct rlhf__model m = model(RLHF_CAP_GENERATE);
    *a = (struct answers){.from = &p, .group = 4, .delays = 1};
    g->n = 3;
    const struct rlhf__gen_turns turns = {.ctx = a,
                                          .longest = LONGEST,
                                          .begin = answer_begin,
                                          .ended = answer_ended,
                                          .advance = answer_advance,
                                          .next = over_at_once};
    const struct rlhf__ends ends = {.n = 1, .id = {STOP}};
    const struct rlhf__gen_request q = {.n = p.n,
                                        .slots = 3,
                                        .prompt = a->prompt,
                                        .prompt_len = a->len,
                                        .max_new = 9,
                                        .ends = &ends,
                                        .dist = &dist,
                                        .logp_dist = &dist,
                                        .turns = &turns};
    struct rlhf__gen_result r = {0};
    assert_int_equal(rlhf__generate(&m, g, &q, &r, NULL), RLHF_OK);
    for (uint32_t i = 0; i < p.n; i++)
        assert_true(i % 2 ? r.len[i] > TURNS : r.len[i] == 0);
    rlhf__gen_result_finish(&r);
    free(a);
    free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sharing_changes_nothing),
        cmocka_unit_test(steps_apart_draw_the_same),
        cmocka_unit_test(tokens_are_counted_once),
        cmocka_unit_test(what_cannot_be_shared_is_written_out),
        cmocka_unit_test(caches_for_a_slots_worth_of_groups),
        cmocka_unit_test(waiting_changes_nothing),
        cmocka_unit_test(others_go_on),
        cmocka_unit_test(a_sequence_may_end_before_it_begins),
    };
    return cmocka_run_group_tests_name("decode", tests, NULL, NULL);
}
