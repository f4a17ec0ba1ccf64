// tests/models/test_turns_gen.c: samples rows with turns. Some sampled tokens make a row pause
// while other rows continue. Then given tokens are appended to the row's slot, and the row samples
// again. Log-probs of the sampled tokens have the same bits as those of forward() over the whole
// row, and the ids do not depend on how long rows pause.
#include "decoders.h"

#include <string.h>

enum { ROWS = 12, GROUP = 4, GROUPS = ROWS / GROUP, LEN = 96, TURNS = 3, LONGEST = 60, STEP = 32 };

struct line {
    int32_t ids[LEN], n, turn[LEN]; // turn -1: given
    float logp[LEN];
    // number of tokens in the row's slot (-1: not begun); number of prompt tokens outside the
    // prefix
    int32_t held, own;
    int32_t turns, in_turn, wait, done;
    uint64_t drawn;
};

struct setup {
    const char *plugin, *backend;
    const struct setting *settings;
    int32_t dtype, share;
    uint32_t threads, delays; // delays: seed of the pauses
    // deliberate mistakes: a given token is not read; turns begin one token late
    int32_t forgets, late;
};

struct result {
    double worst;          // difference of a drawn token's log-probs
    int32_t policy, given; // tokens
    int32_t stray;         // given tokens with a log-prob
    int32_t reserved;
    uint64_t hash; // hash of all ids
};

static uint32_t next_of(uint32_t *s) {
    *s = *s * 1664525u + 1013904223u;
    return *s >> 8;
}

struct step {
    int32_t slot[STEP], start[STEP], offset[STEP + 1], next[STEP], prefix[STEP], who[STEP];
    int32_t ids[STEP * LEN];
    uint8_t silent[STEP];
    uint64_t counter[STEP];
    float logp[STEP];
    uint32_t n;
};

static void add(struct step *s, int32_t slot, int32_t start, const int32_t *ids, int32_t n,
                int32_t prefix, int32_t who) {
    const uint32_t r = s->n++;
    s->slot[r] = slot;
    s->start[r] = start;
    s->prefix[r] = prefix;
    s->who[r] = who;
    s->silent[r] = who < 0;
    memcpy(s->ids + s->offset[r], ids, (size_t)n * sizeof *ids);
    s->offset[r + 1] = s->offset[r] + n;
}

// Adds every row that can continue to the step. Returns 0 when all rows are done.
static int lay_out(struct step *s, struct line *line, const struct setup *x, int32_t *filled) {
    int alive = 0;
    s->n = 0;
    for (int32_t i = 0; i < ROWS; i++) {
        struct line *l = &line[i];
        const int32_t g = i / GROUP, prefix = x->share ? ROWS + g : -1;
        if (l->done) continue;
        alive = 1;
        if (l->wait > 0) {
            l->wait--;
            continue;
        }
        if (x->share && !filled[g]) add(s, ROWS + g, 0, l->ids, l->own, -1, -1);
        filled[g] = 1;
        const int32_t from = l->own + (l->held < 0 ? 0 : l->held);
        add(s, i, l->held < 0 ? 0 : l->held, l->ids + from, l->n - from, prefix, i);
        s->counter[s->n - 1] = (uint64_t)i * 65536 + l->drawn;
    }
    return alive;
}

// Appends the environment's tokens, which depend only on the row and its turn.
static void say(struct line *l, int32_t row, int32_t last, int32_t vocab) {
    uint32_t s = (uint32_t)(row * 97 + l->turns * 13 + last);
    for (int32_t k = 1 + (int32_t)(next_of(&s) % 9); k > 0; k--) {
        l->turn[l->n] = -1;
        l->ids[l->n++] = (int32_t)(next_of(&s) % (uint32_t)vocab);
    }
}

static void take(const struct step *s, struct line *line, int32_t vocab, uint32_t *delays) {
    for (uint32_t r = 0; r < s->n; r++) {
        if (s->who[r] < 0) continue;
        struct line *l = &line[s->who[r]];
        l->held = s->start[r] + s->offset[r + 1] - s->offset[r];
        l->turn[l->n] = l->turns;
        l->logp[l->n] = s->logp[r];
        l->ids[l->n++] = s->next[r];
        l->drawn++;
        if (++l->in_turn < 6 && s->next[r] % 5) continue;
        l->in_turn = 0;
        l->done = ++l->turns == TURNS || l->n > LONGEST;
        if (l->done) continue;
        say(l, s->who[r], s->next[r], vocab);
        l->wait = (int32_t)(next_of(delays) % 5);
    }
}

// Makes a deliberate mistake, so that the row that is compared differs from the row that was
// sampled.
static void err_in(struct line *l, int32_t prompt_len, const struct setup *x) {
    int32_t given = prompt_len;
    while (given < l->n && l->turn[given] >= 0)
        given++;
    if (x->forgets && given < l->n) l->ids[given] = (l->ids[given] + 1) % 61;
    for (int32_t t = l->n - 1; x->late && t > prompt_len; t--) {
        l->turn[t] = l->turn[t - 1];
        l->logp[t] = l->logp[t - 1];
    }
}

static void compare(struct model *m, const struct line *line, const int32_t *prompt_len,
                    const rlhf_dist *dist, struct result *out) {
    static int32_t ids[ROWS * LEN], turn[ROWS * LEN];
    static float logp[ROWS * LEN];
    int32_t offset[ROWS + 1] = {0};
    for (int32_t i = 0; i < ROWS; i++) {
        memcpy(ids + offset[i], line[i].ids, (size_t)line[i].n * sizeof *ids);
        memcpy(turn + offset[i], line[i].turn, (size_t)line[i].n * sizeof *turn);
        offset[i + 1] = offset[i] + line[i].n;
    }
    const rlhf_batch b = {.size = sizeof b,
                          .n = ROWS,
                          .total = (uint32_t)offset[ROWS],
                          .ids = ids,
                          .offset = offset,
                          .prompt_len = prompt_len,
                          .turn = turn};
    const rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_LOGP, .dist = dist};
    const rlhf_heads h = {.size = sizeof h, .logp = logp};
    must(m, m->ops->forward(m->self, &b, &f, &h));
    *out = (struct result){.hash = 0xcbf29ce484222325u};
    for (int32_t i = 0; i < ROWS; i++)
        for (int32_t t = prompt_len[i]; t < line[i].n; t++) {
            out->hash = (out->hash ^ (uint64_t)line[i].ids[t]) * 0x100000001b3u;
            out->policy += line[i].turn[t] >= 0;
            out->given += line[i].turn[t] < 0;
            out->stray += line[i].turn[t] < 0 && logp[offset[i] + t] != 0;
            if (line[i].turn[t] < 0) continue;
            const float a = line[i].logp[t], c = logp[offset[i] + t];
            const double d = memcmp(&a, &c, sizeof a) ? 1e-30 + (a > c ? a - c : c - a) : 0;
            if (d > out->worst) out->worst = d;
        }
}

static struct result play(const struct setup *x) {
    static struct line line[ROWS];
    static struct step s;
    int32_t prompt_len[ROWS], filled[GROUPS] = {0};
    uint32_t seed = 7, delays = x->delays;
    struct backend backend = backend_open(x->backend, x->threads, 0);
    const rlhf_model_open o = {.size = sizeof o, .dtype = x->dtype, .compute = backend.compute};
    struct model m = model_open(x->plugin, x->settings, &o);
    const rlhf_dist dist = RLHF_DIST(1 / 0.9, 1, 0, 0);
    struct result out;
    rlhf_gen *cache = NULL;
    model_fill(&m, 0.3);
    memset(line, 0, sizeof line);
    for (int32_t i = 0; i < ROWS; i++) {
        struct line *l = &line[i];
        prompt_len[i] = i % GROUP ? prompt_len[i - 1] : 3 + (int32_t)(next_of(&seed) % 9);
        for (; l->n < prompt_len[i]; l->n++) {
            l->turn[l->n] = -1;
            l->ids[l->n] = i % GROUP ? line[i - 1].ids[l->n]
                                     : (int32_t)(next_of(&seed) % (uint32_t)m.info.n_vocab);
        }
        l->own = x->share ? prompt_len[i] - 1 : 0;
        l->held = -1;
        l->wait = (int32_t)(next_of(&delays) % 4);
    }
    must(&m, m.ops->gen_open(m.self, ROWS + GROUPS, 80, &cache));
    while (lay_out(&s, line, x, filled)) {
        const rlhf_gen_step q = {.size = sizeof q,
                                 .n = s.n,
                                 .slot = s.slot,
                                 .start = s.start,
                                 .ids = s.ids,
                                 .offset = s.offset,
                                 .dist = &dist,
                                 .logp_dist = &dist,
                                 .seed = 11,
                                 .stream = 5,
                                 .counter = s.counter,
                                 .next = s.next,
                                 .logp = s.logp,
                                 .prefix = x->share ? s.prefix : NULL,
                                 .silent = x->share ? s.silent : NULL};
        if (s.n) must(&m, m.ops->gen_step(m.self, cache, &q));
        take(&s, line, m.info.n_vocab, &delays);
    }
    m.ops->gen_close(m.self, cache);
    for (int32_t i = 0; i < ROWS; i++)
        err_in(&line[i], prompt_len[i], x);
    compare(&m, line, prompt_len, &dist, &out);
    model_close(&m);
    backend_close(&backend);
    return out;
}

// ---- cases ----

static const char *backend_name;

static const struct setting gpt2[] = {
    {"vocab_size", "61"}, {"n_positions", "96"}, {"n_embd", "32"}, {"n_layer", "2"},
    {"n_head", "2"},      {"n_inner", "64"},     {NULL, NULL}};

static struct setup setup_of(int k) {
    return (struct setup){.plugin = k & 1 ? "qwen3" : "gpt2",
                          .backend = backend_name,
                          .settings = k & 1 ? wider_qwen3 : gpt2,
                          .dtype = k & 2 ? RLHF_BF16 : RLHF_F32,
                          .share = k & 4 ? 1 : 0,
                          .threads = k & 8 && !backend_is_slow() ? 2 : 1,
                          .delays = 1};
}

static void sampling_is_training(void **state) {
    (void)state;
    for (int k = 0; k < (backend_is_slow() ? 8 : 16); k++) {
        struct setup x = setup_of(k);
        const struct result first = play(&x);
        for (x.delays = 2; x.delays < 4; x.delays++) {
            const struct result again = play(&x);
            assert_true(again.hash == first.hash && again.worst <= first.worst);
            assert_int_equal(again.stray, 0);
        }
        if (!(first.worst <= 0)) fail_msg("setting %d: log-probs differ by %g", k, first.worst);
        assert_int_equal(first.stray, 0);
        assert_true(first.policy > 100 && first.given > 90);
    }
}

// The same for layers with a state.
static void states_continue(void **state) {
    (void)state;
    struct backend b = backend_open(backend_name, 1, 0);
    const int fits = plugin_fits(b.compute, "lfm2");
    backend_close(&b);
    if (!fits) skip();
    for (int k = 0; k < (backend_is_slow() ? 8 : 16); k++) {
        struct setup x = setup_of(k);
        x.plugin = k & 1 ? "qwen3_5_text" : "lfm2";
        x.settings = k & 1 ? wider_qwen3_5 : wider_lfm2;
        const struct result first = play(&x);
        x.delays = 3;
        const struct result again = play(&x);
        assert_true(again.hash == first.hash && again.worst <= 0);
        if (!(first.worst <= 0)) fail_msg("setting %d: log-probs differ by %g", k, first.worst);
        assert_true(first.policy > 50 && first.given > 50);
        x.forgets = 1;
        assert_true(play(&x).worst > 1e-3);
    }
}

// The comparison must find both mistakes: the model does not read a given token between turns, or
// turns begin one token late.
static void mistakes_are_seen(void **state) {
    (void)state;
    struct setup x = setup_of(0);
    x.forgets = 1;
    assert_true(play(&x).worst > 1e-3);
    x = setup_of(0);
    x.late = 1;
    assert_true(play(&x).worst > 1e-3);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sampling_is_training),
                                       cmocka_unit_test(states_continue),
                                       cmocka_unit_test(mistakes_are_seen)};
    static const char *const names[] = {"reference", "cpu"};
    int failed = 0;
    for (int i = 0; i < 2; i++) {
        backend_name = names[i];
        failed += cmocka_run_group_tests_name(names[i], tests, NULL, NULL);
    }
    return failed;
}
